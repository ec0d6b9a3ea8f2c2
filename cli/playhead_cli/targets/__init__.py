"""Arguments of commands: the run, the step, and whether its program is trusted."""
