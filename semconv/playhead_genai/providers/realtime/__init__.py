"""Connections over which a model is asked many times: each of its answers is a call."""
