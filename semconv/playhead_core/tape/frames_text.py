"""The text form of a tape file: for repositories, where people read diffs.

::

    playhead tape, text 1
    {
     "header": "0011…",
     …
    }
    {
     "fact": "exchange.request",
     "lane": "main",
     "exchange": "http/0",
     "attributes": {…},
     "content": {"json": {"model": "gpt-4o", "messages": […]}}
    }

Each record is one JSON object, one after the other. What follows from the previous record is left out: a
sequence number that is one higher, a time that is one millisecond later, a digest, which is computed
again. Bytes are written as JSON where that restores the same bytes, else as text, else as base64. The
form is lossless: `from_text` returns the records that `to_text` was given.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Content, Delivery, ExchangeId, Fact, digest_of
from playhead_core.tape.frames import Footer, Header, Plain, SpanRecord, too_new
from playhead_semconv import attributes as a
from playhead_semconv import events as e

FIRST_LINE = "playhead tape, text 1\n"
_BEGINNING = "playhead tape, text "

STEP_NS = 1_000_000
"""Default difference between the time of a fact and that of the fact before, in nanoseconds."""

EVENTS = "playhead."

_STYLES: tuple[Callable[[Any], str], ...] = (
    lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: json.dumps(value, ensure_ascii=False),
    json.dumps,
)
"""Styles in which programs write JSON. The index of one is stored with a body in that style."""


def is_text(data: bytes | memoryview) -> bool:
    """Whether a tape file is in text form, of whatever version."""
    return bytes(data[: len(_BEGINNING)]) == _BEGINNING.encode()


def lane_of(name: str) -> int:
    """Return the number of the lane with that name."""
    return int.from_bytes(digest_of(name.encode())[:8]) >> 1


def to_text(records: Iterable[Plain]) -> str:
    """Return the text form of the records of a tape file."""
    writer = _Writer()
    objects = (json.dumps(writer.object(one), indent=1, ensure_ascii=False) for one in records)
    return FIRST_LINE + "".join(f"{text}\n" for text in objects)


def from_text(text: str, name: str = "tape") -> Iterator[Plain]:
    """Yield the records of a text form.

    Raises `CorruptTape` with the line where it cannot be read, or `TapeTooNew`.
    """
    if not text.startswith(FIRST_LINE):
        first = text.partition("\n")[0]
        version = first.removeprefix(_BEGINNING)
        if version != first and version.isdecimal():
            raise too_new(name, int(version))
        raise CorruptTape(f"{name} is in a form that is not known here: {first[:60]!r}")
    reader, decoder, at, line = _Reader(), json.JSONDecoder(), len(FIRST_LINE), 2
    counted = at
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line += text.count("\n", counted, at)
        counted = at
        try:
            found, at = decoder.raw_decode(text, at)
            record = reader.record(cast("dict[str, Any]", found))
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as problem:
            where = problem.lineno if isinstance(problem, json.JSONDecodeError) else line
            raise CorruptTape(
                f"{name} is damaged at line {where}: {problem}",
                hint="take the file as it was committed: git checkout FILE",
            ) from None
        yield record


class _Context:
    """State of the preceding records, from which later records omit what follows."""

    def __init__(self) -> None:
        self.instance = b""
        self.seq = 0
        self.time_ns = 0
        self.lanes: dict[int, str] = {}

    def passed(self, fact: Fact) -> None:
        self.instance = fact.instance
        self.seq, self.time_ns = fact.seq + 1, fact.time_ns + STEP_NS
        if fact.name == e.PLAYHEAD_LANE and a.PLAYHEAD_LANE_NAME in fact.attributes:
            self.lanes[fact.lane] = str(fact.attributes[a.PLAYHEAD_LANE_NAME])


class _Writer:
    def __init__(self) -> None:
        self._context = _Context()

    def object(self, record: Plain) -> dict[str, Any]:
        if isinstance(record, Header):
            self._context.instance, self._context.time_ns = record.instance, record.created_ns
            return {
                "header": record.instance.hex(),
                "created_ns": record.created_ns,
                "schema": record.schema,
                "resource": record.resource,
            }
        if isinstance(record, SpanRecord):
            return {"span": base64.b64encode(record.otlp).decode()}
        if isinstance(record, Footer):
            return {"footer": {"facts": record.facts, "spans": record.spans}}
        return self._fact(record)

    def _fact(self, fact: Fact) -> dict[str, Any]:
        context = self._context
        found: dict[str, Any] = {"fact": fact.name.removeprefix(EVENTS)}
        if not fact.name.startswith(EVENTS):
            found["fact"] = f"/{fact.name}"
        if fact.seq != context.seq:
            found["seq"] = fact.seq
        if fact.time_ns != context.time_ns:
            found["after_ns"] = fact.time_ns - context.time_ns
        if fact.instance != context.instance:
            found["instance"] = fact.instance.hex()
        context.passed(fact)
        found["lane"] = self._lane(fact.lane)
        if fact.trace_id != b"":
            found["trace"] = fact.trace_id.hex()
        if fact.span_id != b"":
            found["span_id"] = fact.span_id.hex()
        exchange, delivery = fact.exchange, fact.delivery
        if exchange is not None:
            found["exchange"] = f"{exchange.kind}/{exchange.ordinal}"
            if exchange.lane != fact.lane:
                found["exchange_lane"] = self._lane(exchange.lane)
        if delivery is not None:
            found["delivery"] = f"{delivery.batch}.{delivery.order}"
        if fact.attributes:
            found["attributes"] = _plain(fact.attributes)
        if fact.body is not None:
            found["content"] = _content(fact.body)
        return found

    def _lane(self, lane: int) -> str | int:
        name = self._context.lanes.get(lane)
        return name if name is not None and lane_of(name) == lane else lane


class _Reader:
    def __init__(self) -> None:
        self._context = _Context()

    def record(self, found: dict[str, Any]) -> Plain:
        if "header" in found:
            self._context.instance = bytes.fromhex(found["header"])
            self._context.time_ns = int(found["created_ns"])
            return Header(
                self._context.instance, int(found["created_ns"]), int(found["schema"]), found["resource"]
            )
        if "span" in found:
            return SpanRecord(base64.b64decode(found["span"], validate=True))
        if "footer" in found:
            return Footer(int(found["footer"]["facts"]), int(found["footer"]["spans"]))
        return self._fact(found)

    def _fact(self, found: dict[str, Any]) -> Fact:
        context = self._context
        name = str(found["fact"])
        lane = _lane(found["lane"])
        exchange = delivery = None
        if "exchange" in found:
            kind, _, ordinal = str(found["exchange"]).rpartition("/")
            exchange = ExchangeId(_lane(found.get("exchange_lane", lane)), kind, int(ordinal))
        if "delivery" in found:
            batch, _, order = str(found["delivery"]).partition(".")
            delivery = Delivery(int(batch), int(order))
        fact = Fact(
            time_ns=context.time_ns + int(found.get("after_ns", 0)),
            lane=lane,
            name=name[1:] if name.startswith("/") else EVENTS + name,
            trace_id=bytes.fromhex(found.get("trace", "")),
            span_id=bytes.fromhex(found.get("span_id", "")),
            exchange=exchange,
            delivery=delivery,
            attributes=_valued(found.get("attributes", {})),
            body=_content_of(found["content"]) if "content" in found else None,
            instance=bytes.fromhex(found["instance"]) if "instance" in found else context.instance,
            seq=int(found.get("seq", context.seq)),
        )
        context.passed(fact)
        return fact


def _lane(said: str | int) -> int:
    return lane_of(said) if isinstance(said, str) else said


def _content(body: Content) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if body.inline is not None:
        found = _bytes(body.inline)
    whole = body.base is None and body.inline is not None
    if not (whole and body.size == len(body.inline or b"")):
        found["size"] = body.size
    if body.base is not None:
        found |= {"base": body.base.hex(), "base_bytes": body.base_bytes}
    if not body.digest:
        found["chunk"] = True
    elif not whole or digest_of(body.inline or b"") != body.digest:
        found["digest"] = body.digest.hex()
    return found


def _content_of(found: dict[str, Any]) -> Content:
    inline = _bytes_of(found)
    base = bytes.fromhex(found["base"]) if "base" in found else None
    digest = bytes.fromhex(found["digest"]) if "digest" in found else b""
    if not digest and not found.get("chunk"):
        digest = digest_of(inline or b"")
    size = int(found.get("size", len(inline or b"")))
    return Content(digest, size, inline, base, int(found.get("base_bytes", 0)))


def _bytes(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if value is not None:
            for number, style in enumerate(_STYLES):
                if style(value) == text:
                    return {"json": value, "style": number} if number else {"json": value}
    lines = text.splitlines(keepends=True)
    return {"text": lines if len(lines) > 1 and "".join(lines) == text else text}


def _bytes_of(found: dict[str, Any]) -> bytes | None:
    if "json" in found:
        return _STYLES[int(found.get("style", 0))](found["json"]).encode()
    if "text" in found:
        text: str | list[str] = found["text"]
        return (text if isinstance(text, str) else "".join(text)).encode()
    if "base64" in found:
        return base64.b64decode(found["base64"], validate=True)
    return None


def _plain(value: Any) -> Any:
    """Return an attribute's value as JSON; bytes, which JSON lacks, under a key of their own."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in cast("dict[str, Any]", value).items()}
    return value


def _valued(value: Any) -> Any:
    if isinstance(value, list):
        return [_valued(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if len(found) == 1 and "$bytes" in found:
            return base64.b64decode(found["$bytes"], validate=True)
        return {key: _valued(one) for key, one in found.items()}
    return value


def require_text(data: bytes, name: str) -> str:
    """Return the bytes of a text form as text. Raises `TapeError` if they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise TapeError(
            f"{name} is no text at byte {problem.start}",
            hint="is it committed as text? git check-attr text FILE",
        ) from None
