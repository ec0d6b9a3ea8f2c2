"""Stored spans: read without a full decode, and completed from their exchanges."""
