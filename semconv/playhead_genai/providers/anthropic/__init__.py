"""Anthropic messages: their blocks, their streams, their dialect."""
