"""Frameworks: spans of their agents, nodes, tools and retrievals, by hooks of their own."""
