"""How both ends of an encrypted connection know each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trust:
    """Files in PEM form; empty: none."""

    ca: str = ""
    """Of the CA that has signed the endpoint's certificate; empty: one of the system's."""
    certificate: str = ""
    """What we show, where the endpoint wants to know who asks. The key may be in the same file."""
    key: str = ""
