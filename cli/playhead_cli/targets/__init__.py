"""Arguments of verbs: the run, the step, and whether its program is trusted."""
