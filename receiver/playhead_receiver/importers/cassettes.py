"""Cassettes of vcrpy: one becomes a run with a tape, and the HTTP exchanges of a tape become one.

A cassette is YAML or JSON. Only text and bytes are read from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any, cast

import msgspec
import yaml

from playhead_core.errors import UsageError
from playhead_genai.other_tools.values import object_in, objects_in
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.http_traffic import Headers, HttpRequest, add_traffic
from playhead_receiver.importers.spans import Converted
from playhead_replay.run.exchanges import RecordedExchange
from playhead_semconv import attributes as a

_UNDATED_NS = 1_000_000_000 * 1_000_000_000
"""When requests without a ``Date`` header were made: times follow from the content, too."""


def is_cassette(item: dict[str, Any]) -> bool:
    """Whether an object is a cassette."""
    return isinstance(item.get("interactions"), list)


def convert(document: Any, found: Converted, name: str) -> None:
    """Add the interactions of a cassette as one run, in their order."""
    for cassette in items_of(document):
        requests: list[HttpRequest] = []
        time_ns = _UNDATED_NS
        for interaction in objects_in(cassette, "interactions"):
            one = _request(interaction)
            if one is None:
                found.not_understood("interactions whose request or response is no text")
                continue
            time_ns = max(_date(one.response_headers), time_ns + 1)
            requests.append(msgspec.structs.replace(one, started_ns=time_ns, ended_ns=time_ns))
        add_traffic(requests, found, name)


def _request(interaction: dict[str, Any]) -> HttpRequest | None:
    asked, answer = object_in(interaction, "request"), object_in(interaction, "response")
    method, url = text(asked, "method").upper(), text(asked, "uri")
    status, reason = object_in(answer, "status"), ""
    code: Any = status.get("code", answer.get("status_code"))
    reason = text(status, "message")
    body, held = asked.get("body"), object_in(answer, "body")
    data = held.get("string") if held else answer.get("content")  # what older versions wrote for httpx
    sent, received = _bytes(body), _bytes(data)
    if not method or not url or sent is None or received is None or not isinstance(code, int):
        return None
    return HttpRequest(
        method=method,
        url=url,
        headers=_pairs(asked.get("headers")),
        body=sent,
        status=code,
        reason=reason,
        response_headers=_pairs(answer.get("headers")),
        data=received,
    )


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None


def _pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers as pairs: a name has a text, or a list of texts."""
    found: list[tuple[str, str]] = []
    for name, values in (cast("dict[Any, Any]", headers) if isinstance(headers, dict) else {}).items():
        listed = cast("list[Any]", values if isinstance(values, list | tuple) else [values])
        for value in listed:
            value = value.decode("latin-1") if isinstance(value, bytes) else value
            if isinstance(name, str) and isinstance(value, str):
                found.append((name, value))
    return found


def _date(headers: Headers) -> int:
    said = next((value for name, value in headers if name.lower() == "date"), "")
    try:
        return ns_of(parsedate_to_datetime(said))
    except (ValueError, TypeError, OverflowError):
        return 0


def cassette_of(exchanges: Iterable[RecordedExchange], *, as_json: bool = False) -> tuple[bytes, int]:
    """Return a cassette with the answered HTTP exchanges, and how many these are.

    `UsageError` if there is none, or if JSON cannot hold a body.
    """
    interactions = [
        _interaction(one)
        for one in exchanges
        if one.id.kind == "http" and one.exchange.ask.direction == "out" and one.status_code is not None
    ]
    if not interactions:
        raise UsageError("a cassette holds HTTP exchanges, and the run has none with an answer")
    document = {"version": 1, "interactions": interactions}
    if not as_json:
        dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        written = yaml.dump(document, Dumper=dumper, allow_unicode=True, sort_keys=True)
        return written.encode(), len(interactions)
    try:
        return json.dumps(document, indent=4).encode() + b"\n", len(interactions)
    except TypeError:
        raise UsageError(
            "a JSON cassette cannot hold bytes that are no text", hint="-o run.yaml"
        ) from None


def _interaction(one: RecordedExchange) -> dict[str, Any]:
    method, _, url = one.key.partition(" ")
    request = {
        "method": method,
        "uri": url,
        "body": _written(one.request) or None,
        "headers": _grouped(one.request_headers),
    }
    reason = str(one.exchange.head.get(a.PLAYHEAD_HTTP_REASON, ""))
    response = {
        "status": {"code": one.status_code, "message": reason},
        "headers": _grouped(one.response_headers),
        "body": {"string": _written(b"".join(chunk.data for chunk in one.chunks))},
    }
    return {"request": request, "response": response}


def _grouped(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return found


def _written(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
