"""The store as other viewers know theirs: Jaeger's remote storage and HTTP JSON, Tempo's HTTP API."""
