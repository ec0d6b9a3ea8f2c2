"""What models answer, on the wire of each provider, and what the spans of such calls say."""
