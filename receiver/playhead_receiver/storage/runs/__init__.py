"""Engine-neutral logic of runs: summaries, lists, names, and name resolution."""
