"""An edited answer: the facts that replace those of the recorded one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from playhead_core.errors import UsageError
from playhead_core.facts import Content, Fact
from playhead_core.rerun.edits import applied
from playhead_core.rerun.plans import Edit
from playhead_core.rerun.rewriting import document_in, rewritten
from playhead_genai.providers import DIALECTS, SseParser, decode_body, wire_of
from playhead_replay.forks.answer_streams import streamed
from playhead_replay.forks.edited_streams import Stream, edited_in_place
from playhead_replay.forks.tools_in_bodies import require_fitting
from playhead_replay.run.exchanges import RecordedExchange
from playhead_semconv import attributes as a
from playhead_semconv import events as e

RECODED = ("content-encoding", "content-length")
"""Headers that describe the encoding and length of the body."""

FAILED = "playhead.error."

_EVENT: Final = re.compile(rb"(?s).+?(?:\r?\n){2}|.+")
"""An event of a stream, with the empty line after it."""


def answer_of(exchange: RecordedExchange) -> Any:
    """The answer of an exchange as a document that can be edited. `UsageError` if it is not one."""
    if exchange.end is None or not exchange.exchange.parts:
        raise UsageError(
            f"{exchange.name} has no response to edit",
            hint="edit its request: --edit request.PATH=VALUE",
        )
    if exchange.exchange.id.kind == "tool":
        (said,) = _json(exchange, exchange.chunks[-1].data).values()
        return said
    body, _ = decode_body(exchange.response_headers, [chunk.data for chunk in exchange.chunks])
    return _folded(exchange, body) if _is_stream(exchange) else _json(exchange, body)


def edited_answer(exchange: RecordedExchange, edits: list[Edit]) -> list[Fact]:
    """The facts of ``exchange`` with an edited answer, under the same numbers. `UsageError`."""
    answer = answer_of(exchange)
    document = applied(answer, edits)
    require_fitting(document_in(exchange.request.decode("utf-8", "replace")), answer, document)
    if exchange.exchange.id.kind == "tool":
        pieces = [_rewritten(exchange.chunks[-1].data, {"return": document})]
    elif _is_stream(exchange):
        pieces = _edited_stream(exchange, answer, document)
    else:
        body, _ = decode_body(exchange.response_headers, [chunk.data for chunk in exchange.chunks])
        pieces = [_rewritten(body, document)]
    own = [fact for fact in exchange.tape.facts() if fact.exchange == exchange.exchange.id]
    return list(_replaced(own, _spread(pieces, len(exchange.exchange.parts))))


def _edited_stream(exchange: RecordedExchange, answer: Any, document: Any) -> list[bytes]:
    """The chunks of the edited stream: recorded events as far as they can be kept, else other ones."""
    chunks = [chunk.data for chunk in exchange.chunks]
    body, _ = decode_body(exchange.response_headers, chunks)
    recorded = Stream.of(chunks if b"".join(chunks) == body else _EVENT.findall(body))
    edited = edited_in_place(recorded, answer, document, lambda one: _folded(exchange, one))
    return streamed(_wire(exchange), document) or [] if edited is None else edited.chunks()


def _spread(pieces: list[bytes], count: int) -> list[bytes]:
    """``pieces`` merged into at most ``count`` pieces, in order."""
    each = -(-len(pieces) // count)
    return [b"".join(pieces[at : at + each]) for at in range(0, len(pieces), each)]


def _replaced(own: list[Fact], pieces: list[bytes]) -> Iterator[Fact]:
    size = sum(map(len, pieces))
    left = iter(pieces)
    for fact in own:
        at = dict(fact.attributes)
        if fact.name == e.PLAYHEAD_EXCHANGE_RESPONSE:
            yield msgspec.structs.replace(fact, attributes=_recoded(at, size))
        elif fact.name == e.PLAYHEAD_EXCHANGE_END:
            kept = {name: value for name, value in at.items() if not name.startswith(FAILED)}
            kept.pop(a.PLAYHEAD_END_DIGEST, None)
            if len(kept) < len(at) and kept.get(a.PLAYHEAD_END_HOW) == "error":
                kept[a.PLAYHEAD_END_HOW] = "complete"
            yield msgspec.structs.replace(fact, attributes=kept)
        elif fact.name == e.PLAYHEAD_EXCHANGE_DATA and at.get(a.PLAYHEAD_EXCHANGE_DIRECTION) != "out":
            piece = next(left, None)
            if piece is None:  # the number must stay occupied; a heartbeat fills it
                yield Fact(fact.time_ns, fact.lane, e.PLAYHEAD_PROCESS_HEARTBEAT, seq=fact.seq)
            else:
                yield msgspec.structs.replace(fact, body=Content.chunk(piece))


def _recoded(at: dict[str, Any], size: int) -> dict[str, Any]:
    given = cast("list[object]", at.get(a.PLAYHEAD_HTTP_HEADERS) or [])
    flat = [str(word) for word in given]
    kept: list[str] = []
    for name, value in zip(flat[::2], flat[1::2], strict=False):
        if name.lower() == "content-length":
            kept += [name, str(size)]
        elif name.lower() not in RECODED:
            kept += [name, value]
    return {**at, a.PLAYHEAD_HTTP_HEADERS: kept} if flat else at


def _is_stream(exchange: RecordedExchange) -> bool:
    headers = {name.lower(): value for name, value in exchange.response_headers}
    return "text/event-stream" in headers.get("content-type", "")


def _wire(exchange: RecordedExchange) -> str:
    method, _, url = exchange.key.partition(" ")
    return wire_of(method, url) or ""


def _folded(exchange: RecordedExchange, body: bytes) -> Any:
    wire = _wire(exchange)
    if wire not in DIALECTS or streamed(wire, {}) is None:
        raise UsageError(
            f"the answer to {exchange.name} is a stream of a kind that cannot be edited",
            hint="edit the request of the next step",
        )
    fold = DIALECTS[wire].fold()
    parser = SseParser()
    found = parser.feed(body)
    last = parser.close()
    for event in [*found, last] if last is not None else found:
        if event.data.strip() == b"[DONE]":
            fold.done()
            continue
        try:
            value = json.loads(event.data)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            fold.event(event.name, cast("dict[str, Any]", value))
    # Convert to plain values: growing strings and arrays have types of their own.
    return json.loads(json.dumps(fold.body()))


def _json(exchange: RecordedExchange, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise UsageError(
            f"the answer to {exchange.name} is not JSON and cannot be edited", cause=str(problem)
        ) from None


def _rewritten(body: bytes, document: Any) -> bytes:
    """Return a recorded body that says ``document``; what is the same keeps its bytes."""
    return rewritten(body.decode("utf-8", "surrogateescape"), document).encode(
        "utf-8", "surrogateescape"
    )
