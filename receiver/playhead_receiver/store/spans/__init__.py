"""Spans as they are stored: looked at without unpacking, and made whole."""
