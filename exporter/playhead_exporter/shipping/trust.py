"""How the two ends of an encrypted connection authenticate each other."""

from __future__ import annotations

import msgspec


class Trust(msgspec.Struct, frozen=True):
    """Paths of PEM files; empty: none."""

    ca: str = ""
    """Certificate of the CA that signed the endpoint's certificate; empty: the system's CAs."""
    certificate: str = ""
    """Client certificate, where the endpoint asks for one. The same file may hold the key."""
    key: str = ""
