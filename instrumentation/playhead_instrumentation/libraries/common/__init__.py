"""Shared by the adapters of libraries: installation, values, exchanges of messages, ends of spans."""
