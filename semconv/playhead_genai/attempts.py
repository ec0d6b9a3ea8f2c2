"""Which requests are attempts of one call, where no funnel of an SDK tells it.

An attempt asks the same as the one before it in its lane, with the same bytes. Either a header of the
SDK says that it is sent again, or the one before failed in a way after which SDKs send again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from playhead_core.facts import Exchange, ExchangeId
from playhead_semconv import attributes as a

_COUNT: Final = "x-stainless-retry-count"
"""Header that counts the attempts of a call from 0."""

_OF_ONE_CALL: Final = ("amz-sdk-invocation-id", "idempotency-key")
"""Headers that all attempts of one call have with one value."""

_PASSING: Final = frozenset((408, 409, 425, 429))
"""Statuses below 500 after which SDKs send a request again."""

_OF_GRPC: Final = frozenset((2, 4, 8, 10, 13, 14, 15))
"""Codes of gRPC that say the same: unknown, deadline exceeded, resource exhausted, aborted, internal,
unavailable, data loss."""


def before(id: ExchangeId) -> ExchangeId | None:
    """Return the exchange before this one in its lane; None if it is the first."""
    return ExchangeId(id.lane, id.kind, id.ordinal - 1) if id.ordinal else None


def is_next_attempt(sent: Exchange, earlier: Exchange) -> bool:
    """Whether ``sent`` is the next attempt of the call that ``earlier`` was an attempt of."""
    ask, asked = sent.ask, earlier.ask
    if ask.key != asked.key or not ask.body.digest or ask.body.digest != asked.body.digest:
        return False
    said = _said(_headers(sent), _headers(earlier))
    return _failed(earlier) if said is None else said


def _said(headers: Mapping[str, str], earlier: Mapping[str, str]) -> bool | None:
    """Return what the headers of two requests say; None: nothing."""
    count = headers.get(_COUNT, "")
    if count.isdecimal():
        return count == str(int(earlier[_COUNT]) + 1) if earlier.get(_COUNT, "").isdecimal() else False
    for name in _OF_ONE_CALL:
        if name in headers and name in earlier:
            return headers[name] == earlier[name]
    return None


def _failed(exchange: Exchange) -> bool:
    """Whether an attempt failed in a way after which SDKs send again."""
    status = exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
    if isinstance(status, int):
        return status in _PASSING or status >= 500
    end = exchange.end
    if exchange.id.kind == "grpc":
        code = None if end is None else end.values.get(a.RPC_GRPC_STATUS_CODE)
        return code in _OF_GRPC and not exchange.parts
    return end is not None and end.how == "error"


def _headers(exchange: Exchange) -> dict[str, str]:
    flat: Any = exchange.ask.details.get(a.PLAYHEAD_HTTP_HEADERS)
    words = [str(word) for word in cast(list[Any], flat)] if isinstance(flat, list) else []
    return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=False)}
