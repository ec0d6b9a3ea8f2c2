"""Changes to the OpenTelemetry SDK for recording: providers, samplers, exporters, span ids."""
