"""Makes untrusted input safe: text that is shown, paths, counts, rings of spans."""
