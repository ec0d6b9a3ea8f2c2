"""Runs as files: export, import, extraction of a request from its process, redaction of credentials."""
