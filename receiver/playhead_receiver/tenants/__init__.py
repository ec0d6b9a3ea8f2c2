"""Tenants: each has its own store; a backup copies all of them."""
