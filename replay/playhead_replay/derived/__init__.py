"""What is derived from the steps of a run beside failures: loops, signals, instructions from data."""
