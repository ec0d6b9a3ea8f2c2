"""Shared by commands that control running agents: orders over the query API, and their output."""
