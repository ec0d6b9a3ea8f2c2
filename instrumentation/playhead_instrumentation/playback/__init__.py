"""Sources that answer in place of the world: replay, fork, resume. A recording does not load them."""
