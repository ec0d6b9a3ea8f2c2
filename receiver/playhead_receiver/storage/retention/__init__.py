"""Retention: how long runs and the history of services are kept, and what share of the traces."""
