"""The scopes of tokens."""

from __future__ import annotations

from typing import Literal, TypeAlias

Scope: TypeAlias = Literal["ingest", "read", "control", "admin"]

SCOPES: tuple[Scope, ...] = ("ingest", "read", "control", "admin")
"""``ingest``: send OTLP, put checkpoints. ``read``: read runs and checkpoints. ``control``: mark runs,
control them while they go on, delete checkpoints. ``admin``: all, delete runs, audit."""
