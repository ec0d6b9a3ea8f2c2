"""Folds of facts: into exchanges, into the end of an exchange, into a level."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from playhead_core.credentials.responses import repacked
from playhead_core.facts import (
    Ask,
    Content,
    End,
    ErrorRecord,
    Exchange,
    ExchangeId,
    Fact,
    Fidelity,
    Part,
)
from playhead_semconv import attributes as a
from playhead_semconv import events as e

CONTROLS = (
    e.PLAYHEAD_CONTROL_CHECKPOINT,
    e.PLAYHEAD_CONTROL_HALT,
    e.PLAYHEAD_CONTROL_EDIT,
    e.PLAYHEAD_CONTROL_RELEASE,
)
"""Facts about an exchange that was halted before it went out."""


def fold_exchanges(facts: Iterable[Fact]) -> dict[ExchangeId, Exchange]:
    """Fold request, response, data and end facts into exchanges, in order of their requests."""
    exchanges: dict[ExchangeId, Exchange] = {}
    made: set[ExchangeId] = set()
    """Exchanges whose request body was made while it was sent."""
    for fact in facts:
        if fact.exchange is None:
            continue
        if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST:
            at = fact.attributes
            inbound = is_inbound(fact)
            if fact.body is None and not inbound:
                made.add(fact.exchange)
            exchanges[fact.exchange] = Exchange(
                id=fact.exchange,
                ask=Ask(
                    kind=fact.exchange.kind,
                    key=str(at[a.PLAYHEAD_ASK_KEY]),
                    body=fact.body or Content.chunk(b""),
                    effect="write" if at.get(a.PLAYHEAD_ASK_EFFECT) == "write" else "read",
                    direction="in" if inbound else "out",
                    details=at,
                ),
                time_ns=fact.time_ns,
                trace_id=fact.trace_id,
                span_id=fact.span_id,
                first_seq=fact.seq,
                last_seq=fact.seq,
                delivery=fact.delivery,
            )
            continue
        exchange = exchanges.get(fact.exchange)
        if exchange is None:
            continue
        exchange.last_seq = fact.seq
        if fact.name in CONTROLS:
            _intervene(exchange, fact)
        elif fact.name == e.PLAYHEAD_EXCHANGE_RESPONSE:
            exchange.head = fact.attributes
            exchange.head_delivery = fact.delivery
            exchange.head_time_ns = fact.time_ns
            exchange.head_after = len(exchange.sent)
        elif fact.name == e.PLAYHEAD_EXCHANGE_DATA and fact.body is not None:
            if fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) == "out":
                exchange.sent.append(_part_of(fact, fact.body))
                continue
            exchange.parts.append(_part_of(fact, fact.body, len(exchange.sent)))
        elif fact.name == e.PLAYHEAD_EXCHANGE_END:
            exchange.end = msgspec.structs.replace(end_of(fact), after=len(exchange.sent))
            if a.PLAYHEAD_FIDELITY in fact.attributes:
                exchange.fidelity = Fidelity(fact.attributes[a.PLAYHEAD_FIDELITY])
    for id in made:
        exchange = exchanges[id]
        if exchange.sent:
            whole = Content.of(b"".join(piece.data.inline or b"" for piece in exchange.sent))
            exchange.ask = msgspec.structs.replace(exchange.ask, body=whole)
    for exchange in exchanges.values():
        if any(_was_changed(part, exchange) for part in exchange.parts):
            _repack(exchange)
    return exchanges


def _intervene(exchange: Exchange, fact: Fact) -> None:
    """Apply what an operator or a rule did to an exchange before it went out."""
    exchange.controls = [*exchange.controls, fact]
    ask, details = exchange.ask, exchange.ask.details
    if fact.name == e.PLAYHEAD_CONTROL_EDIT and fact.body is not None:
        if exchange.asked is None:
            exchange.asked = ask.body
            details = {**details, a.PLAYHEAD_EDITED_DIGEST: ask.body.digest.hex()}
        exchange.ask = msgspec.structs.replace(ask, body=fact.body, details=details)
    elif fact.name == e.PLAYHEAD_CONTROL_RELEASE:
        exchange.released = fact.delivery
        if fact.attributes.get(a.PLAYHEAD_CONTROL_ACTION) in ("answer", "reject"):
            details = {**details, a.PLAYHEAD_EDITED_ANSWER: True}
            exchange.ask = msgspec.structs.replace(ask, details=details)


def _was_changed(part: Part, exchange: Exchange) -> bool:
    """Whether a part of a compressed answer is stored uncompressed, or as older versions packed it."""
    changed = part.attributes
    if a.PLAYHEAD_REDACTED_UNPACKED in changed:
        return True
    return a.PLAYHEAD_REDACTED_COUNT in changed and bool(_header(exchange, "content-encoding"))


def _repack(exchange: Exchange) -> None:
    """Rebuild one compressed answer, of the length that its head announces, from a changed one."""
    parts, end = exchange.parts, exchange.end
    lacks = [str(part.attributes.get(a.PLAYHEAD_REDACTED_UNPACKED, "")) for part in parts]
    held = [part.data.inline for part in parts if part.data.inline is not None]
    complete = end is not None and end.how == "complete"
    try:  # without content there is nothing to rebuild
        pieces = repacked(held, lacks, _header(exchange, "content-encoding"), complete=complete)
    except Exception:  # what comes before may be damaged, in a different way for each coding
        return
    exchange.parts = [
        msgspec.structs.replace(part, data=Content(b"", len(piece), piece))
        for part, piece in zip(parts, pieces, strict=True)
    ]
    _announce(exchange, sum(map(len, pieces)))
    if end is not None:
        exchange.end = msgspec.structs.replace(end, digest=b"")


def _announce(exchange: Exchange, size: int) -> None:
    """Correct the length in the head. More is announced than ``size`` if the answer was cut."""
    end, announced = exchange.end, _header(exchange, "content-length")
    if not announced.isdigit():
        return
    if end is None or end.how != "complete":
        missing = end.error.args[0] if end is not None and end.error and end.error.args else 0
        size += missing if isinstance(missing, int) and missing > 0 else 1
    flat = [str(word) for word in exchange.head[a.PLAYHEAD_HTTP_HEADERS]]
    for index in range(0, len(flat) - 1, 2):
        if flat[index].lower() == "content-length":
            flat[index + 1] = str(size)
    exchange.head = {**exchange.head, a.PLAYHEAD_HTTP_HEADERS: flat}


def _header(exchange: Exchange, name: str) -> str:
    """The values of a header of the answer, joined by commas; empty if it has none."""
    flat = [str(word) for word in exchange.head.get(a.PLAYHEAD_HTTP_HEADERS) or ()]
    pairs = zip(flat[::2], flat[1::2], strict=False)
    return ", ".join(value for key, value in pairs if key.lower() == name)


def is_inbound(fact: Fact) -> bool:
    """Whether this fact is a request that came to the program."""
    asked = fact.name == e.PLAYHEAD_EXCHANGE_REQUEST
    return asked and fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) == "in"


def _part_of(fact: Fact, body: Content, after: int = 0) -> Part:
    return Part(body, fact.time_ns, fact.delivery, fact.attributes, after)


def end_of(fact: Fact) -> End:
    """Return the `End` that an exchange-end fact holds."""
    at = fact.attributes
    how = at.get(a.PLAYHEAD_END_HOW)
    error = None
    if a.PLAYHEAD_ERROR_QUALNAME in at:
        error = ErrorRecord(
            str(at.get(a.PLAYHEAD_ERROR_MODULE, "")),
            str(at[a.PLAYHEAD_ERROR_QUALNAME]),
            str(at.get(a.PLAYHEAD_ERROR_MESSAGE, "")),
            list(at.get(a.PLAYHEAD_ERROR_ARGS, [])),
            str(at.get(a.PLAYHEAD_ERROR_PHASE, "")),
        )
    return End(
        how if how in ("complete", "error") else "abandoned",
        fact.delivery,
        error,
        fact.time_ns,
        _digest(at.get(a.PLAYHEAD_END_DIGEST)),
        at,
        fact.body,
    )


def _digest(text: object) -> bytes:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""


def level_of(facts: Iterable[Fact]) -> str:
    """Return the level at which a tape was recorded: the last one it states."""
    level = "causal"
    for fact in facts:
        if fact.name in (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT):
            level = str(fact.attributes.get(a.PLAYHEAD_RUN_LEVEL, level))
    return level
