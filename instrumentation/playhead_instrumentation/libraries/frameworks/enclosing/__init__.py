"""Frameworks whose functions a hook encloses: a span from the call to its end."""
