"""From a batch to a commit: prepared in the caller's thread, written by the writer's thread."""
