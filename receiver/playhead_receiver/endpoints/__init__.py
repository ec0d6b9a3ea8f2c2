"""The OTLP endpoints over HTTP and gRPC: admission, intake, and refusals."""
