"""Files of other tools: traces, HTTP traffic and cassettes become spans and facts of OTLP requests."""
