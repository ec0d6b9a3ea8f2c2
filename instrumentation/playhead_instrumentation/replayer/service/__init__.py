"""Sends the requests of a tape to the recorded application again, without a network."""
