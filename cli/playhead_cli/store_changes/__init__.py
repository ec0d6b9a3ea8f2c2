"""Shared by commands that change a store: deletion, import, entries in the audit log."""
