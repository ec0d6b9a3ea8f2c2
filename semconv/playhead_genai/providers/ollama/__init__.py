"""Ollama, its own API: chat, generate, embeddings."""
