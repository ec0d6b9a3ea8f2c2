"""Manual instrumentation: tools, steps, states, checkpoints and artifacts that the program marks."""
