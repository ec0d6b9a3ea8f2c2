"""The OTLP endpoints over HTTP and gRPC: and the query API."""
