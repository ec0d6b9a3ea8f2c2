"""The output of one step: its messages, and with an option its bytes."""
