"""Access tokens. The text of a token is shown once, when it is created; only its digest is stored."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec
from blake3 import blake3

from playhead_core.errors import StoreError, UsageError
from playhead_receiver.auth.database import AccessFile

Scope: TypeAlias = Literal["ingest", "read", "control", "admin"]

SCOPES: tuple[Scope, ...] = ("ingest", "read", "control", "admin")
"""``ingest``: send OTLP, put checkpoints. ``read``: read runs and checkpoints. ``control``: mark runs,
control them while they go on, delete checkpoints. ``admin``: all, delete runs, audit."""


SECRET_BYTES = 32
NOTED_EVERY_NS = 60_000_000_000
"""Minimum time between two notes of the use of a token."""
_TOKEN = re.compile(r"ph_([0-9a-f]{8})_([A-Za-z0-9_-]{43})\Z")
TENANT = re.compile(r"(?:[a-z0-9][a-z0-9_-]{0,62})?\Z")


class Token(msgspec.Struct, frozen=True):
    """A token without its secret."""

    id: str
    """8 hex digits, the readable part of the token."""
    name: str
    tenant: str
    """The tenant whose data it gives access to; empty: the data folder's own."""
    scopes: tuple[Scope, ...]
    created_ns: int
    expires_ns: int | None
    revoked_ns: int | None
    used_ns: int | None = None
    """Last use, to the minute; None: never recorded."""

    def lives(self, now_ns: int) -> bool:
        """Whether it is still valid: neither revoked nor expired."""
        return self.revoked_ns is None and (self.expires_ns is None or now_ns < self.expires_ns)


class TokenBook:
    """The tokens of a data folder."""

    def __init__(self, file: AccessFile) -> None:
        self._file = file
        self._noted_ns: dict[str, int] = {}

    def create(
        self, name: str, scopes: Collection[str], *, tenant: str = "", lifetime_ns: int | None = None
    ) -> tuple[Token, str]:
        """Create a token; returns it and its text, which is not stored.

        `UsageError` if a scope is unknown or missing, or the tenant's name is invalid.
        """
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not scopes:
            what = f"there is no scope {unknown[0]!r}" if unknown else "a token needs a scope"
            raise UsageError(what, hint=f"scopes are {', '.join(SCOPES)}")
        if not TENANT.match(tenant):
            raise UsageError(
                f"{tenant!r} cannot be the name of a tenant", hint="use a-z, 0-9, _ and -, at most 63"
            )
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(SECRET_BYTES)
        text = f"ph_{id}_{secret}"
        now = time.time_ns()
        granted: tuple[Scope, ...] = tuple(one for one in SCOPES if one in scopes)
        expires = None if lifetime_ns is None else now + lifetime_ns
        token = Token(id, name, tenant, granted, now, expires, None)
        with self._file.writing() as db:
            db.execute(
                "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
                (id, name, tenant, ",".join(granted), _digest(text), now, expires),
            )
        return token, text

    def tokens(self) -> list[Token]:
        """All tokens that were ever created, in the order of creation."""
        with self._file.reading() as db:
            rows: list[Any] = (
                [] if db is None else list(db.execute(f"{_SELECT} ORDER BY created_ns, id"))
            )
        return [_token(row) for row in rows]

    def any_live(self) -> bool:
        """Whether there is a valid token."""
        living = (
            "SELECT 1 FROM token WHERE revoked_ns IS NULL"
            " AND (expires_ns IS NULL OR expires_ns > ?) LIMIT 1"
        )
        with self._file.reading() as db:
            return db is not None and bool(list(db.execute(living, (time.time_ns(),))))

    def requires_one(self) -> bool:
        """Whether callers need a token: one exists that is not revoked, even if it has expired."""
        with self._file.reading() as db:
            return db is not None and bool(
                list(db.execute("SELECT 1 FROM token WHERE revoked_ns IS NULL LIMIT 1"))
            )

    def revoke(self, word: str) -> list[Token]:
        """Revoke the token with an id, or all tokens with a name; return them. `UsageError` if none."""
        with self._file.writing() as db:
            rows: list[Any] = list(
                db.execute(f"{_SELECT} WHERE (id = ? OR name = ?) AND revoked_ns IS NULL", (word, word))
            )
            if not rows:
                raise UsageError(f"there is no valid token {word}", hint="playhead token list")
            now = time.time_ns()
            for row in rows:
                db.execute("UPDATE token SET revoked_ns = ? WHERE id = ?", (now, row[0]))
        return [msgspec.structs.replace(_token(row), revoked_ns=now) for row in rows]

    def find(self, text: str) -> Token | None:
        """The valid token with this text; None if there is none."""
        parts = _TOKEN.match(text)
        if parts is None:
            return None
        with self._file.reading() as db:
            if db is None:
                return None
            row: Any = next(
                iter(db.execute(f"{_WITH_DIGEST} WHERE id = ?", (parts[1],))),
                None,
            )
        if row is None or not hmac.compare_digest(row[-1], _digest(text)):
            return None
        token = _token(row[:-1])
        return token if token.lives(time.time_ns()) else None

    def used(self, id: str) -> None:
        """Note the use of a token: once a minute, if the file can be written."""
        now = time.time_ns()
        if now - self._noted_ns.get(id, 0) < NOTED_EVERY_NS:
            return
        self._noted_ns[id] = now
        with suppress(StoreError), self._file.writing() as db:
            db.execute("INSERT OR REPLACE INTO token_use VALUES (?, ?)", (id, now))


_FIELDS = (
    "id, name, tenant, scopes, created_ns, expires_ns, revoked_ns,"
    " (SELECT used_ns FROM token_use WHERE token_use.id = token.id)"
)
_SELECT = f"SELECT {_FIELDS} FROM token"
_WITH_DIGEST = f"SELECT {_FIELDS}, digest FROM token"


def _token(row: Any) -> Token:
    id, name, tenant, scopes, *times = row
    return Token(id, name, tenant, tuple(scopes.split(",")), *times)


def _digest(text: str) -> bytes:
    # 256 random bits need no slow hash.
    return blake3(text.encode()).digest()
