"""A recording without content (``PLAYHEAD_CONTENT=metadata``): what the registry calls metadata.

Every fact passes here on its way to the tape, and every span. What is not in `playhead_semconv.metadata`
is left out, so that a new boundary or an instrumentor of somebody else records nothing by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from playhead_core.facts import Content, Fact
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.redaction.redactor import Redactor
from playhead_semconv import attributes as a
from playhead_semconv.metadata import DIGESTED, KEPT

DIGEST_CHARS: Final = 16

_FLAT: Final = frozenset((a.PLAYHEAD_HTTP_HEADERS, a.PLAYHEAD_GRPC_METADATA, a.PLAYHEAD_GRPC_TRAILERS))
_HEADERS: Final = frozenset(
    (
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "grpc-encoding",
        "host",
        "openai-model",
        "openai-processing-ms",
        "openai-version",
        "anthropic-version",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "transfer-encoding",
        "x-amzn-requestid",
        "x-request-id",
        "x-should-retry",
    )
)
"""Headers that say how a message is sent and how fast one may ask."""
_LIMITS: Final = ("x-ratelimit-", "anthropic-ratelimit-")
_NAMED: Final = frozenset(("http", "websocket", "grpc", "tool", "redis", "postgresql", "connect"))
"""Kinds of exchanges whose key consists of names and addresses."""
_CALLS_TOOL: Final = "tools/call "
_PROGRAM: Final = re.compile(r"(?:sh: )?[\w.+-]+")
"""The key of a child process: the name of its program."""


class Metadata:
    """Reduces facts and attributes to metadata."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def fact(self, fact: Fact) -> Fact:
        """Return the fact without content: its body is only a size."""
        named = self.attributes(fact.attributes)
        if fact.exchange is not None and isinstance(key := named.get(a.PLAYHEAD_ASK_KEY), str):
            named[a.PLAYHEAD_ASK_KEY] = self._key(fact.exchange.kind, key)
        body = None if fact.body is None else Content(b"", fact.body.size)
        return msgspec.structs.replace(fact, attributes=named, body=body)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that are metadata."""
        found: dict[str, Any] = {}
        for name, value in attributes.items():
            if name in KEPT:
                found[name] = self._kept(name, value)
            elif name in DIGESTED:
                found[name] = self.digest(str(value))
        return found

    def digest(self, text: str) -> str:
        """Return a keyed digest of ``text``, which tells equal texts."""
        data = text.encode("utf-8", "surrogatepass")
        return self._redactor.digest(data)[:DIGEST_CHARS]

    def _kept(self, name: str, value: Any) -> Any:
        if name in (a.URL_FULL, a.URL_PATH):
            return self._redactor.url(str(value))
        if name in _FLAT:
            words = [str(word) for word in cast("Sequence[Any]", value)]
            pairs = zip(words[::2], words[1::2], strict=False)
            return [word for pair in pairs if _is_plain(pair[0].lower()) for word in pair]
        if name == a.PLAYHEAD_READ_KIND:
            kind, space, rest = str(value).partition(" ")
            return f"{kind} {self.digest(rest)}" if space else kind
        if name == a.PLAYHEAD_ASK_SPANS:
            starts = cast("list[dict[str, Any]]", value)
            return [{**one, "attributes": self.attributes(one["attributes"])} for one in starts]
        return value

    def _key(self, kind: str, key: str) -> str:
        if kind in _NAMED or key.startswith(_CALLS_TOOL):
            return key
        if kind == "process" and _PROGRAM.fullmatch(key):
            return key
        first, space, rest = key.partition(" ")
        return f"{first} {self.digest(rest)}" if space and kind == "mcp" else self.digest(key)


def _is_plain(header: str) -> bool:
    return header in _HEADERS or header.startswith(_LIMITS)


class MetadataSink:
    """A sink in front of another, which gets metadata only."""

    def __init__(self, sink: Sink, redactor: Redactor) -> None:
        self._sink = sink
        self._metadata = Metadata(redactor)

    @property
    def instance(self) -> bytes:
        """See `Sink.instance`."""
        return self._sink.instance

    def append(self, fact: Fact) -> int:
        """See `Sink.append`."""
        return self._sink.append(self._metadata.fact(fact))
