"""The GenAI conventions: typed messages, providers, and translation from other conventions."""
