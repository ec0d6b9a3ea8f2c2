"""Calls of databases as exchanges, whatever driver makes them."""
