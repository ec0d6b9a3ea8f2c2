"""OTLP written by hand, without a protobuf library: most agents never load one."""
