"""Sources that answer from a tape: replay, fork, resume. A recording does not import them."""
