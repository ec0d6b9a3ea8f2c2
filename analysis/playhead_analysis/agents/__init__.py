"""Agents that talk to each other: who asked whom, how, and who waited."""
