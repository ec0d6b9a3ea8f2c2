"""Whether two groups of runs differ, and in what."""
