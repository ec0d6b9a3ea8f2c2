"""What is done to the SDK of OpenTelemetry: providers, samplers, exporters, ids of spans."""
