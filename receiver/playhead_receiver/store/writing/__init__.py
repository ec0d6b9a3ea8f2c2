"""From a batch to a commit: prepared in the caller's thread, written in the writer's."""
