"""Commands that control a live run."""
