"""HTTP traffic that another tool recorded, as the tape and the spans of a run.

The tape names no program, so a replay needs ``--program``. It says as little as the file: no lanes, no
chunks, and the order of the file. Credentials are removed as in a recording, so that the requests of a
program that playhead runs are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from playhead_core.boundaries import EXCHANGES, names, selected
from playhead_core.credentials.rules import RULES, SecretNames
from playhead_core.facts import Content, Delivery, ExchangeId, Fact, digest_of
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_genai.providers import decode_body
from playhead_receiver.archive.redacted_runs import Redaction
from playhead_receiver.importers.spans import CLIENT, Converted, span_id_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

READS = ("GET", "HEAD", "OPTIONS")
_LANE = 1
_NAMES = SecretNames(RULES)
_SHORTEST = 8
"""A shorter credential is replaced under its name only, as in a recording."""
_OF_BODY = frozenset(("content-encoding", "content-length", "transfer-encoding"))

Headers = Sequence[tuple[str, str]]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its answer."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    status: int = 0
    """0: there was no answer."""
    reason: str = ""
    version: str = "HTTP/1.1"
    response_headers: Headers = ()
    data: bytes = b""
    """Body of the answer, encoded as its headers say."""
    started_ns: int = 0
    ended_ns: int = 0
    error: str = ""
    """Why there was no answer."""


def add_traffic(requests: Sequence[HttpRequest], found: Converted, name: str) -> None:
    """Add a run with these requests. ``name``: of the file, for people; ids follow from the content."""
    if not requests:
        found.not_understood("files without requests")
        return
    digest = digest_of(msgspec.msgpack.encode([found.tool, list(requests)]))
    trace_id, instance = digest[:16], digest[16:32]
    root = span_id_of(trace_id, "root")
    redaction = Redaction(_credentials(requests))
    facts = list(_facts(requests, trace_id, root, name))
    numbered = [
        msgspec.structs.replace(fact, instance=instance, seq=seq) for seq, fact in enumerate(facts)
    ]
    found.facts += redaction.tape(
        MemoryTape(numbered, instance), numbered, f"removed by the import of {found.tool}"
    )
    add = partial(
        found.span, trace=trace_id.hex(), service=name, resource={a.PLAYHEAD_INSTANCE: instance.hex()}
    )
    before = len(found.spans)
    add(
        id=root.hex(),
        name=name,
        started_ns=numbered[0].time_ns,
        ended_ns=numbered[-1].time_ns,
        attributes={},
    )
    for number, one in enumerate(requests):
        add(
            id=_span_id(trace_id, number).hex(),
            parent=root.hex(),
            name=one.method,
            started_ns=one.started_ns,
            ended_ns=one.ended_ns,
            attributes=_attributes(one, number),
            kind=CLIENT,
            error=one.error or ("" if one.status >= 400 else None),
        )
    found.spans[before:] = map(redaction.span, found.spans[before:])


def _span_id(trace_id: bytes, number: int) -> bytes:
    return span_id_of(trace_id, f"request {number}")


def _attributes(one: HttpRequest, number: int) -> dict[str, Any]:
    where = urlsplit(one.url)
    return {
        a.HTTP_REQUEST_METHOD: one.method,
        a.URL_FULL: one.url,
        a.SERVER_ADDRESS: where.hostname,
        a.HTTP_RESPONSE_STATUS_CODE: one.status or None,
        a.ERROR_TYPE: "_OTHER" if one.error else str(one.status) if one.status >= 400 else None,
        a.PLAYHEAD_EXCHANGE_ID: str(ExchangeId(_LANE, "http", number)),
    }


def _facts(requests: Sequence[HttpRequest], trace_id: bytes, root: bytes, name: str) -> Iterator[Fact]:
    """The facts in the order of the file, in a process that begins with its first request."""
    begin, end = min(one.started_ns for one in requests), max(one.ended_ns for one in requests)
    started: dict[str, Any] = {
        a.PLAYHEAD_RUN_AGENT: name,
        a.PLAYHEAD_RUN_LEVEL: EXCHANGES,
        a.PLAYHEAD_RUN_BOUNDARIES: list(names(selected(EXCHANGES, ""))),
        a.PLAYHEAD_RUN_MODE: "record",
    }
    yield Fact(begin, _LANE, e.PLAYHEAD_PROCESS_START, trace_id, root, attributes=started)
    lane = {a.PLAYHEAD_LANE_NAME: "main", a.PLAYHEAD_LANE_PARENT: ""}
    yield Fact(begin, _LANE, e.PLAYHEAD_LANE, trace_id, attributes=lane)
    deliveries = (Delivery(batch, 0) for batch in range(1, 3 * len(requests) + 1))
    for number, one in enumerate(requests):
        ids = trace_id, _span_id(trace_id, number), ExchangeId(_LANE, "http", number)
        asked = {
            a.PLAYHEAD_ASK_KEY: f"{one.method} {one.url}",
            a.PLAYHEAD_ASK_EFFECT: "read" if one.method in READS else "write",
            a.PLAYHEAD_HTTP_HEADERS: _flat(one.headers),
        }
        body = Content.of(one.body)
        yield Fact(one.started_ns, _LANE, e.PLAYHEAD_EXCHANGE_REQUEST, *ids, attributes=asked, body=body)
        if one.status:
            head = {
                a.HTTP_RESPONSE_STATUS_CODE: one.status,
                a.PLAYHEAD_HTTP_HEADERS: _flat(_fitting(one.response_headers, one.data)),
                a.PLAYHEAD_HTTP_VERSION: one.version,
                a.PLAYHEAD_HTTP_REASON: one.reason,
            }
            yield Fact(one.ended_ns, _LANE, e.PLAYHEAD_EXCHANGE_RESPONSE, *ids, next(deliveries), head)
            if one.data:
                data = Content.chunk(one.data)
                yield Fact(
                    one.ended_ns, _LANE, e.PLAYHEAD_EXCHANGE_DATA, *ids, next(deliveries), body=data
                )
        ended: dict[str, Any] = {a.PLAYHEAD_END_HOW: "complete" if one.status else "error"}
        if not one.status:
            ended[a.PLAYHEAD_ERROR_MODULE], ended[a.PLAYHEAD_ERROR_QUALNAME] = (
                "builtins",
                "ConnectionError",
            )
            ended[a.PLAYHEAD_ERROR_MESSAGE] = one.error
        yield Fact(one.ended_ns, _LANE, e.PLAYHEAD_EXCHANGE_END, *ids, next(deliveries), ended)
    exited = {a.PLAYHEAD_PROCESS_EXIT_CODE: 0}
    yield Fact(end, _LANE, e.PLAYHEAD_PROCESS_EXIT, trace_id, attributes=exited)


def _flat(headers: Headers) -> list[str]:
    return [word for pair in headers for word in pair]


def _fitting(headers: Headers, data: bytes) -> Headers:
    """Headers without those that do not fit the body: tools store it decoded, or in one piece."""
    chunked = any(name.lower() == "transfer-encoding" for name, _ in headers)
    is_plain = bool(decode_body(headers, [data])[1])
    length = [] if chunked or not data else [("content-length", str(len(data)))]
    left_out = ("content-length", "content-encoding" if is_plain else "content-length")
    return [*(one for one in headers if one[0].lower() not in left_out), *length]


def without_body_headers(headers: Headers) -> Headers:
    """Headers of an answer whose body is there as a browser decoded it."""
    return [one for one in headers if one[0].lower() not in _OF_BODY and not one[0].startswith(":")]


def _credentials(requests: Iterable[HttpRequest]) -> Iterator[str]:
    """Values under names of credentials: they are removed wherever they are."""
    for one in requests:
        for name, value in (*one.headers, *one.response_headers):
            if _NAMES.secret("header", name.lower()):
                scheme, space, token = value.partition(" ")
                kept = token if space and scheme.isalpha() else value
                if len(kept) >= _SHORTEST and not kept.isdigit():
                    yield kept
        for name, value in parse_qsl(urlsplit(one.url).query):
            if _NAMES.secret("query", name.lower()) and len(value) >= _SHORTEST:
                yield value
