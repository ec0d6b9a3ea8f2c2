"""Runs that are asked for in the small language: stored ones, and those that go on."""
