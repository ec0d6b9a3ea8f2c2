"""Hugging Face, what of its inference has a wire of its own: embeddings."""
