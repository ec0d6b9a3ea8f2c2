"""The plain values that a store takes and returns: spans, batches, run summaries and queries."""
