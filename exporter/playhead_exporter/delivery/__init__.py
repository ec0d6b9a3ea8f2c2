"""Where a recording is delivered, and what the user hears about it."""
