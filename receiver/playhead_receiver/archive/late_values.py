"""Credentials that were recognized only after they had been recorded, and where a run holds them.

The request that reveals one says so on the tape: by its length and a keyed digest, so that only the user
who recorded it can find it. Mostly such a value comes from the program's own code and was not recorded.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.credentials.spellings import find_by_digest, values_with_digest
from playhead_core.errors import TapeError
from playhead_core.facts import Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.providers import decode_body
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class LateValue(NamedTuple):
    """A credential in recorded data."""

    value: str
    place: str
    """For people: ``file ./keys.txt, line 2``, ``span work, attribute note``."""


_ANSWER: Final = (e.PLAYHEAD_EXCHANGE_DATA, e.PLAYHEAD_EXCHANGE_RESPONSE)


def late_marks(run: Run) -> dict[str, int]:
    """Return length and keyed digest of each such credential, with the time (ns) of its request."""
    found: dict[str, int] = {}
    for tape in run.tapes:
        for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST, e.PLAYHEAD_PROCESS_START):
            marks: list[Any] = fact.attributes.get(a.PLAYHEAD_REDACTED_LATE) or []
            found |= {str(mark): fact.time_ns for mark in marks}
    return found


def redaction_key() -> bytes | None:
    """Return the key of this user's digests; None if there is none."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    try:
        key = Path(state, "playhead", "redaction.key").read_bytes()
    except OSError:
        return None
    return key if len(key) == 32 else None


def late_values(
    run: Run, marks: Collection[str], key: bytes, until_ns: int | None = None
) -> Iterator[LateValue]:
    """Yield the credentials that match ``marks``, from the first place to the last.

    ``until_ns``: search only what was recorded until then. From its request on, a process hides a value.
    """
    for tape in run.tapes:
        for fact in tape.facts():
            if until_ns is None or fact.time_ns <= until_ns:
                for place, text in _texts_of(tape, fact):
                    yield from _located(place, text, marks, key)
    for exchange in run.exchanges:
        if until_ns is None or exchange.exchange.time_ns <= until_ns:
            yield from _located(f"answer to {exchange.key}", _answer(exchange), marks, key)
    for span in run.spans:
        if until_ns is None or (span.ended_ns or span.started_ns) <= until_ns:
            place = f"span {span.name}"
            yield from _located(place, f"{span.name} {span.status_message}", marks, key)
            held = [span.attributes, span.resource, *(one.attributes for one in span.events)]
            for name, text in _attributes(held):
                yield from _located(f"{place}, attribute {name}", text, marks, key)


def _attributes(held: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    return ((name, str(value)) for named in held for name, value in named.items())


def _texts_of(tape: IndexedTape, fact: Fact) -> Iterator[tuple[str, str]]:
    """Yield the texts of a fact, with their places."""
    place = _place(tape, fact)
    for name, text in _attributes([fact.attributes]):
        yield f"{place}, {name}", text
    if fact.body is not None and fact.body.inline is not None:
        yield place, fact.body.inline.decode("utf-8", "replace")


def _place(tape: IndexedTape, fact: Fact) -> str:
    known: Mapping[str, Any] = fact.attributes
    if fact.name == e.PLAYHEAD_READ:
        kind = str(known.get(a.PLAYHEAD_READ_KIND, ""))
        return f"file {kind.partition(' ')[2]}" if kind.startswith("file/") else kind
    if fact.name == e.PLAYHEAD_EFFECT:
        target = known.get(a.PLAYHEAD_EFFECT_TARGET)
        return f"file {target}" if target else str(known.get(a.PLAYHEAD_EFFECT_KIND, ""))
    if fact.exchange is None:
        return fact.name
    exchange = tape.exchange(fact.exchange)
    asked = "" if exchange is None else exchange.ask.key
    return f"{'answer to' if fact.name in _ANSWER else 'request'} {asked}"


def _answer(exchange: RecordedExchange) -> str:
    """Return the joined answer without its content encodings."""
    try:
        body, _ = decode_body(exchange.response_headers, [one.data for one in exchange.chunks])
    except TapeError:
        return ""
    return body.decode("utf-8", "replace")


def _located(place: str, text: str, marks: Collection[str], key: bytes) -> Iterator[LateValue]:
    for at, value in find_by_digest(text, marks, key):
        line = f", line {text.count(chr(10), 0, at) + 1}" if "\n" in text.rstrip("\n") else ""
        yield LateValue(value, place + line)


def told_in_spans(
    spans: Iterable[bytes], logs: Iterable[bytes], marks: Collection[str], key: bytes
) -> set[str]:
    """The values in stored spans and log records that match the marks in ``marks``."""
    found = chain(map(ResourceSpans.FromString, spans), map(ResourceLogs.FromString, logs))
    texts = map(str, found)
    return {value for text in texts for value in values_with_digest(text, marks, key)}
