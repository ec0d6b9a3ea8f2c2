"""The protocols that every store engine implements, and their types."""
