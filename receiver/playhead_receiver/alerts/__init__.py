"""Alerts: rules that name a condition and a webhook or a command, and their delivery."""
