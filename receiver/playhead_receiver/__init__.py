"""Takes OTLP in, stores it without loss, shows it, passes it on."""
