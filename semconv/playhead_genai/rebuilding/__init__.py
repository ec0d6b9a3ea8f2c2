"""Rebuilds requests' answers in the wire form of a provider from what a span says about a model call."""
