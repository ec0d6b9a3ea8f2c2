"""HTTP archives (HAR 1.2), as browsers and proxies save them."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import urlencode

from playhead_genai.other_tools.values import object_in, objects_in
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.http_traffic import HttpRequest, add_traffic, without_body_headers
from playhead_receiver.importers.spans import Converted


def is_har(item: dict[str, Any]) -> bool:
    """Whether an object is an HTTP archive."""
    return isinstance(item.get("log"), dict) and isinstance(item["log"].get("entries"), list)


def convert(document: Any, found: Converted, name: str) -> None:
    """Add the entries of an archive as one run, in the order of their starts."""
    for archive in items_of(document):
        requests: list[HttpRequest] = []
        for entry in objects_in(object_in(archive, "log"), "entries"):
            one = _request(entry)
            if one is None:
                found.not_understood("entries without a method, a URL or a time")
            else:
                requests.append(one)
        add_traffic(sorted(requests, key=lambda one: one.started_ns), found, name)


def _request(entry: dict[str, Any]) -> HttpRequest | None:
    asked, answer = object_in(entry, "request"), object_in(entry, "response")
    method, url = text(asked, "method").upper(), text(asked, "url")
    started = ns_of(entry.get("startedDateTime"))
    if not method or not url or not started:
        return None
    spent, status = entry.get("time"), answer.get("status")
    spent_ns = int(spent * 1_000_000) if isinstance(spent, int | float) and 0 <= spent < 1e9 else 0
    content = object_in(answer, "content")
    found = status if isinstance(status, int) and 100 <= status < 600 else 0
    return HttpRequest(
        method=method,
        url=url,
        headers=[one for one in _pairs(asked, "headers") if not one[0].startswith(":")],
        body=_sent(object_in(asked, "postData")),
        status=found,
        reason=text(answer, "statusText"),
        response_headers=without_body_headers(_pairs(answer, "headers")),
        data=_bytes(text(content, "text"), text(content, "encoding")),
        started_ns=started,
        ended_ns=started + spent_ns,
        error="" if found else text(answer, "_error") or "no response was recorded",
    )


def _pairs(holder: dict[str, Any], name: str) -> list[tuple[str, str]]:
    named = objects_in(holder, name)
    return [(text(one, "name"), text(one, "value")) for one in named if text(one, "name")]


def _sent(posted: dict[str, Any]) -> bytes:
    written = text(posted, "text")
    return _bytes(written, text(posted, "encoding")) or urlencode(_pairs(posted, "params")).encode()


def _bytes(written: str, encoding: str) -> bytes:
    if encoding == "base64":
        try:
            return base64.b64decode(written)
        except (binascii.Error, ValueError):
            pass
    return written.encode("utf-8", "replace")
