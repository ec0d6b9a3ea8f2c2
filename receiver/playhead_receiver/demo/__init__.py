"""The demonstration: a scripted provider on loopback, and the agents that it answers."""
