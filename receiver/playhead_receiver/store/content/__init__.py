"""Bytes of what is stored: cut, shared, packed, compressed, and large bodies in their places."""
