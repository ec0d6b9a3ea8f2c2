"""Shared by verbs that control running agents: orders over the query API, and what is shown of a run."""
