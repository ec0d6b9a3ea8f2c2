"""The settings of a receiver."""
