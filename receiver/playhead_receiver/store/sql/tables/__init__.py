"""Tables that belong together, each with what is read from it and written to it."""
