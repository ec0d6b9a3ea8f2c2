"""APIs of other viewers over the store: Jaeger's remote storage and HTTP JSON, Tempo's HTTP API."""
