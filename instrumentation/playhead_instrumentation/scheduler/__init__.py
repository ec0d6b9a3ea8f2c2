"""The scheduler: which threads, tasks and event loops run, which wait, and whose turn is next."""
