"""Jaeger's APIs: remote storage (`jaeger.storage.v2`), and the HTTP JSON of its query service."""
