"""The GenAI conventions: typed messages, providers, and what other conventions say in other words."""
