"""The scheduler: which threads, tasks and event loops run, which wait, and whose permit is next."""
