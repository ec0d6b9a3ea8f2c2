"""Gemini, at Google AI Studio and on Vertex AI: its parts, its streams, its dialects."""
