"""Commands that connect other programs."""
