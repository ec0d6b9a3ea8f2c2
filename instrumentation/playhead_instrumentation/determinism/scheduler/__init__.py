"""Who runs and who waits: the turns of threads, tasks and event loops."""
