"""What others have written, made harmless: text that is shown, paths, counts."""
