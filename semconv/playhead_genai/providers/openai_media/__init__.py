"""Dialects of OpenAI for images and audio."""
