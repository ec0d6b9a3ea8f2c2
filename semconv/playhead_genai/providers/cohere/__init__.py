"""Cohere, version 2 of its API: chat and embeddings."""
