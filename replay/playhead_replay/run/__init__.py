"""A run, put together from its tapes and spans: steps, exchanges, command, outputs and costs."""
