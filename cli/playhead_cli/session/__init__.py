"""One invocation of the command line: its options, settings, streams and messages."""
