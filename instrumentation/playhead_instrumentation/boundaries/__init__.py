"""Where the outside world enters or leaves the process, at every level. One folder per boundary."""
