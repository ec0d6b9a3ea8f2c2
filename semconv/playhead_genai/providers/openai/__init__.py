"""OpenAI's chat completions, responses, embeddings and other calls."""
