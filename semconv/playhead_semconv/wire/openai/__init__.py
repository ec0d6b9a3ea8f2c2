"""OpenAI's chat completions, responses and embeddings."""
