"""Shared by verbs that change a store: deletion, import, entries in the audit log."""
