"""Tempo's HTTP API, as Grafana's Tempo data source uses it."""
