"""Facts, spans, tapes and spools that a test makes itself, or damages."""
