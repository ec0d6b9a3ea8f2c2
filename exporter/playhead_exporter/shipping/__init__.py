"""OTLP requests and the transports that carry them."""
