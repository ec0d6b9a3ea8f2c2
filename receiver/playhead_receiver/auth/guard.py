"""Authenticates and authorizes requests."""

from __future__ import annotations

import hmac

import msgspec

from playhead_core.errors import WireError
from playhead_receiver.auth.tokens import SCOPES, Scope, Token, TokenBook

BEARER = "bearer "
STATIC = "PLAYHEAD_TOKEN"
OWNER = "data folder"
"""Names of callers whose token is not in the book."""


class Unauthenticated(WireError):
    """The token is missing or wrong."""

    code = "unauthenticated"


class Forbidden(WireError):
    """The token is valid, but does not have the required scope."""

    code = "forbidden"


class Caller(msgspec.Struct, frozen=True):
    """The authenticated sender of a request."""

    token: str = ""
    """Id of the token; empty if none was needed, or if it is not in the book."""
    name: str = ""
    tenant: str = ""
    scopes: frozenset[Scope] = frozenset(SCOPES)

    def may(self, scope: Scope) -> bool:
        """Whether the caller has ``scope``; ``admin`` includes all scopes."""
        return scope in self.scopes or "admin" in self.scopes


ANYBODY = Caller()


class Guard:
    """Admits callers with a valid token, or anybody if none is ``required``. Safe from any thread.

    ``static``: a further token, for all scopes, that is not stored. ``key``: another one, for users who
    may read the data folder. ``by_book``: a token is required while the book has one not revoked.
    """

    def __init__(
        self,
        book: TokenBook,
        *,
        static: str = "",
        key: str = "",
        required: bool = False,
        by_book: bool = False,
    ) -> None:
        self._book = book
        self._known = [(text.encode(), name) for text, name in ((static, STATIC), (key, OWNER)) if text]
        self._by_book = by_book
        self._required = required

    @property
    def required(self) -> bool:
        """Whether a token is required. `StoreUnavailable`."""
        return self._required or (self._by_book and self._book.requires_one())

    def admit(self, authorization: str, scope: Scope) -> Caller:
        """The caller with this Authorization header, who needs ``scope``.

        `Unauthenticated`, `Forbidden`, `StoreUnavailable`.
        """
        caller = self._caller(authorization)
        if caller is None:
            if self.required:
                raise Unauthenticated("the token is missing or wrong", hint="export PLAYHEAD_TOKEN=…")
            return ANYBODY
        if not caller.may(scope):
            raise Forbidden(
                f"the token {caller.name} has no scope {scope}",
                hint=f"playhead token create NAME --scope {scope}",
            )
        return caller

    def tokens(self, tenant: str) -> list[Token]:
        """The tokens of a tenant, without their secrets. `StoreUnavailable`."""
        return [one for one in self._book.tokens() if one.tenant == tenant]

    def _caller(self, authorization: str) -> Caller | None:
        if authorization[: len(BEARER)].lower() != BEARER:
            return None
        text = authorization[len(BEARER) :].strip()
        for known, name in self._known:
            if hmac.compare_digest(text.encode(), known):
                return Caller(name=name)
        token = self._book.find(text)
        if token is None:
            return None
        self._book.used(token.id)
        return Caller(token.id, token.name, token.tenant, frozenset(token.scopes))
