"""Connections of the websockets library, and their messages."""
