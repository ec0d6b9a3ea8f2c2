"""One file per verb; each has a `command`."""
