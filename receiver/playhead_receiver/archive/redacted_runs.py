"""A run without its credentials: every fact, body and span is rewritten.

In answers of servers, a credential is replaced by a mask of the same length; elsewhere by a placeholder,
as in a recording. Bodies keep their references to earlier bodies, and digests are recomputed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import blake3
import msgspec
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.credentials import Finder, masked, replaced
from playhead_core.credentials.named_values import Kind
from playhead_core.credentials.responses import decoded, scrubber
from playhead_core.credentials.rules import RULES, SecretNames
from playhead_core.credentials.spellings import spellings
from playhead_core.errors import TapeError
from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.otlp.any_values import set_value
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.protocols import Tape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_FLAT = frozenset((a.PLAYHEAD_HTTP_HEADERS, a.PLAYHEAD_GRPC_METADATA, a.PLAYHEAD_GRPC_TRAILERS))
"""Attributes that hold name, value, name, value, …"""

_NAMES = SecretNames(RULES)
_COUNT = re.compile(r"-?[\d.,:]{0,15}")
"""A number: not a credential, whatever its name."""

_HIDDEN = frozenset((Kind.KNOWN, Kind.SHAPE, Kind.FIELD, Kind.ADDRESS))


class Redaction:
    """Removes credentials from the tapes and spans of a run, and counts the replacements."""

    def __init__(self, values: Iterable[str], *, knows_late: bool = True) -> None:
        """``values``: removed in addition to everything that is recognized by name or shape.

        ``knows_late``: they include the credentials that were recognized late, as far as the run holds
        them, so that its facts need not report these any more.
        """
        self.knows_late = knows_late
        self._finder = Finder()
        self.values = 0
        self.places = 0
        self.facts = 0
        for value in values:
            self.values += 1
            self._finder.add(spellings(value), value.encode())

    def text(self, text: str) -> str:
        """``text`` with placeholders."""
        data = text.encode("utf-8", "surrogatepass")
        return self._without(data).decode("utf-8", "surrogatepass")

    def value(self, value: Any, name: str = "") -> Any:
        """The value of the attribute ``name`` with placeholders, in every text and under every name."""
        if isinstance(value, bytes):
            return self._without(value)
        if isinstance(value, list):
            items = cast(list[Any], value)
            if name in _FLAT:
                pairs = zip(items[::2], items[1::2], strict=False)
                return [part for key, one in pairs for part in (key, self._header(str(key), one))]
            return [self.value(one, name) for one in items]
        if isinstance(value, dict):
            return self.values_of(cast(dict[str, Any], value))
        if isinstance(value, str):
            value = self.text(value)
        return self._under(name, value) if name and not isinstance(value, bool) else value

    def values_of(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes with placeholders in names and values."""
        return {self.text(name): self.value(value, name) for name, value in named.items()}

    def _header(self, name: str, value: Any) -> Any:
        """The value of a header with placeholders; without its scheme's token where its name says so."""
        if not isinstance(value, str) or PLACEHOLDER in value:
            return self.value(value, name)
        if not _NAMES.secret("header", name.lower().replace("_", "-")) or _COUNT.fullmatch(value):
            return self.value(value, name)
        self.places += 1
        scheme, space, _ = value.partition(" ")
        return f"{scheme} {PLACEHOLDER}" if space and scheme.isalpha() else PLACEHOLDER

    def _under(self, name: str, value: Any) -> Any:
        """``value``, a text or a number, without what its ``name`` marks as a credential."""
        try:
            data = json.dumps({name: value}, ensure_ascii=False).encode("utf-8", "surrogatepass")
            kept = next(iter(json.loads(self._without(data)).values()))
            return min(kept, (1 << 63) - 1) if isinstance(kept, int) else kept  # what OTLP can carry
        except (TypeError, ValueError):
            return value if isinstance(value, str) else PLACEHOLDER

    def _without(self, data: bytes, *, same_length: bool = False) -> bytes:
        spans = [(one.begin, one.end) for one in self._finder.find(data) if one.kind in _HIDDEN]
        self.places += len(spans)
        return (masked if same_length else replaced)(data, spans) if spans else data

    def tape(self, tape: Tape, facts: Sequence[Fact], done: str) -> list[Fact]:
        """The facts of a tape without credentials.

        ``done``: who redacted it and when; noted on the first fact.
        """
        made = _Facts(self, facts)
        found = [made.without(fact) for fact in facts]
        if found == list(facts):
            return found
        self.facts += sum(one != fact for one, fact in zip(found, facts, strict=True))
        log: list[Any] = list(found[0].attributes.get(a.PLAYHEAD_REDACTED_LOG) or [])
        attributes = {**found[0].attributes, a.PLAYHEAD_REDACTED_LOG: [*log, done]}
        return [msgspec.structs.replace(found[0], attributes=attributes), *found[1:]]

    def span(self, otlp: bytes) -> bytes:
        """A span in its stored form, without its credentials."""
        envelope = ResourceSpans.FromString(otlp)
        before = self.places
        self._attributes(envelope.resource.attributes)
        for scope in envelope.scope_spans:
            scope.scope.name, scope.scope.version = map(
                self.text, (scope.scope.name, scope.scope.version)
            )
            self._attributes(scope.scope.attributes)
            for span in scope.spans:
                span.name = self.text(span.name)
                span.status.message = self.text(span.status.message)
                span.trace_state = self.text(span.trace_state)
                self._attributes(span.attributes)
                for event in span.events:
                    event.name = self.text(event.name)
                    self._attributes(event.attributes)
                for link in span.links:
                    link.trace_state = self.text(link.trace_state)
                    self._attributes(link.attributes)
        return otlp if self.places == before else envelope.SerializeToString()

    def log(self, otlp: bytes) -> bytes:
        """A log record in its stored form, without its credentials."""
        envelope = ResourceLogs.FromString(otlp)
        before = self.places
        self._attributes(envelope.resource.attributes)
        for scope in envelope.scope_logs:
            self._attributes(scope.scope.attributes)
            for record in scope.log_records:
                record.event_name = self.text(record.event_name)
                record.severity_text = self.text(record.severity_text)
                self._any(record.body, "")
                self._attributes(record.attributes)
        return otlp if self.places == before else envelope.SerializeToString()

    def _attributes(self, pairs: Iterable[KeyValue]) -> None:
        for pair in pairs:
            self._any(pair.value, pair.key)
            pair.key = self.text(pair.key)

    def _any(self, value: AnyValue, name: str) -> None:
        kind = value.WhichOneof("value")
        if kind == "bytes_value":
            value.bytes_value = self._without(value.bytes_value)
        elif kind == "array_value":
            for one in value.array_value.values:
                self._any(one, name)
        elif kind == "kvlist_value":
            self._attributes(value.kvlist_value.values)
        elif kind in ("string_value", "int_value", "double_value"):
            held = getattr(value, kind)
            header = _header_name(name)
            kept = self._header(header, held) if header else self.value(held, name)
            if kept != held:
                set_value(value, kept)

    def body(self, data: bytes) -> bytes:
        """A whole body with placeholders."""
        return self._without(data)

    def blob(self, data: bytes) -> bytes:
        """Content that occurs in several facts; its length does not change."""
        return self._without(data, same_length=True)

    def answer(
        self, pieces: list[bytes], lacks: list[str], headers: Mapping[str, str]
    ) -> tuple[list[bytes], str] | None:
        """The pieces of an answer without credentials, decoded; None if it holds none.

        Each keeps its length, unless the answer is compressed: then the content coding that they lack
        is returned, too. ``lacks``: the same for the given ``pieces``; empty where they have it.
        """
        scrub = scrubber(self._finder, lambda _: None, content_type=headers.get("content-type", ""))
        try:
            texts, coding = decoded(pieces, lacks, headers.get("content-encoding", ""))
        except Exception:  # not compressed, or not as its header says; each coding has its own errors
            texts, coding = pieces, ""
        kept = [scrub.chunk(one) for one in texts]
        self.places += scrub.count
        return (kept, coding) if scrub.count else None


class _Facts:
    """Rewrites the facts of one tape in order."""

    def __init__(self, redaction: Redaction, facts: Sequence[Fact]) -> None:
        self._redaction = redaction
        self._tape = IndexedTape(facts)
        self._bodies: dict[bytes, tuple[bytes, bytes]] = {}
        """New bytes and digest of a body, by its old digest."""
        self._parts: dict[tuple[ExchangeId, int], tuple[bytes, str]] = {}
        """New bytes of a part of an answer, and the content coding that they lack."""
        self._answers: dict[ExchangeId, str] = {}
        """New digests of answers that changed."""
        self._named: dict[str, str] = {}
        """New digests in attributes, by the old ones."""
        self._read_answers(facts)
        self._read_blobs(facts)

    def _read_answers(self, facts: Sequence[Fact]) -> None:
        heads: dict[ExchangeId, dict[str, str]] = {}
        data: dict[ExchangeId, list[Fact]] = {}
        for fact in facts:
            if fact.exchange is None:
                continue
            if fact.name == e.PLAYHEAD_EXCHANGE_RESPONSE:
                flat: list[Any] = fact.attributes.get(a.PLAYHEAD_HTTP_HEADERS) or []
                pairs = zip(flat[::2], flat[1::2], strict=False)
                heads[fact.exchange] = {str(name).lower(): str(value) for name, value in pairs}
            elif fact.name == e.PLAYHEAD_EXCHANGE_DATA and fact.body and fact.body.inline is not None:
                if fact.attributes.get(a.PLAYHEAD_EXCHANGE_DIRECTION) != "out":
                    data.setdefault(fact.exchange, []).append(fact)
        for id, parts in data.items():
            self._read_answer(id, parts, heads.get(id, {}))

    def _read_answer(self, id: ExchangeId, parts: list[Fact], headers: dict[str, str]) -> None:
        pieces = [cast(Content, fact.body).inline or b"" for fact in parts]
        lacks = [str(fact.attributes.get(a.PLAYHEAD_REDACTED_UNPACKED, "")) for fact in parts]
        found = self._redaction.answer(pieces, lacks, headers)
        if found is None:
            return
        kept, coding = found
        for fact, piece in zip(parts, kept, strict=True):
            self._parts[id, fact.seq] = piece, coding
        self._answers[id] = blake3.blake3(b"".join(kept)).hexdigest()

    def _read_blobs(self, facts: Sequence[Fact]) -> None:
        digests = {
            str(fact.attributes[a.PLAYHEAD_BLOB_DIGEST])
            for fact in facts
            if fact.name == e.PLAYHEAD_BLOB
        }
        for name in digests:
            old = bytes.fromhex(name)
            try:
                whole = self._tape.read(Content(old, -1))
            except TapeError:
                continue
            new = self._redaction.blob(whole)
            if new != whole:
                self._bodies[old] = new, digest_of(new)
                self._named[name] = digest_of(new).hex()

    def without(self, fact: Fact) -> Fact:
        """One fact without its credentials."""
        before = self._redaction.places
        attributes = {
            self._redaction.text(name): self._attribute(name, value)
            for name, value in fact.attributes.items()
        }
        if self._redaction.knows_late:
            attributes.pop(a.PLAYHEAD_REDACTED_LATE, None)
        part = None if fact.exchange is None else self._parts.get((fact.exchange, fact.seq))
        if part is not None and part[1]:
            attributes[a.PLAYHEAD_REDACTED_UNPACKED] = part[1]
        if fact.name == e.PLAYHEAD_EXCHANGE_END and fact.exchange in self._answers:
            attributes[a.PLAYHEAD_END_DIGEST] = self._answers[fact.exchange]
        body = self._body(fact)
        if self._redaction.places != before:
            count = int(attributes.get(a.PLAYHEAD_REDACTED_COUNT, 0))
            attributes[a.PLAYHEAD_REDACTED_COUNT] = count + self._redaction.places - before
        if body == fact.body and attributes == fact.attributes:
            return fact
        return msgspec.structs.replace(fact, attributes=attributes, body=body)

    def _attribute(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in self._named:
            return self._named[value]
        return self._redaction.value(value, name)

    def _body(self, fact: Fact) -> Content | None:
        body = fact.body
        if body is None:
            return None
        if fact.name == e.PLAYHEAD_BLOB:
            whole = self._bodies.get(bytes.fromhex(str(fact.attributes[a.PLAYHEAD_BLOB_DIGEST])))
            if whole is None or body.inline is None:
                return body
            at = int(fact.attributes.get(a.PLAYHEAD_BLOB_OFFSET, 0))
            return msgspec.structs.replace(body, inline=whole[0][at : at + len(body.inline)])
        if fact.exchange is not None and (fact.exchange, fact.seq) in self._parts:
            piece, _ = self._parts[fact.exchange, fact.seq]
            return Content(b"", len(piece), piece)
        if not body.tells:
            known = self._bodies.get(body.digest)
            if known is not None:
                return Content(known[1], len(known[0]))
            inline = None if body.inline is None else self._redaction.body(body.inline)
            return body if inline == body.inline else Content(b"", len(inline or b""), inline)
        return self._told(body)

    def _told(self, body: Content) -> Content:
        try:
            whole = self._tape.read(body)
        except TapeError:
            return body
        known = self._bodies.get(body.digest)
        new, digest = known or (self._redaction.body(whole), b"")
        base = None if body.base is None else self._bodies.get(body.base)
        if new == whole and base is None:
            return body
        digest = digest or digest_of(new)
        self._bodies[body.digest] = new, digest
        self._named[body.digest.hex()] = digest.hex()
        if body.base is None:
            return Content(digest, len(new), new)
        basis, of_base = base or (self._tape.read(Content(body.base, -1)), body.base)
        shared = _common(basis, new)
        return Content(digest, len(new), new[shared:], of_base, shared)


def _header_name(name: str) -> str:
    """The header that an attribute holds; empty: it holds none.

    >>> _header_name("http.request.header.x_api_key"), _header_name("openai.api_key")
    ('x_api_key', '')
    """
    _, header, last = name.rpartition(".header.")
    return last if header else ""


def _common(left: bytes, right: bytes) -> int:
    """Length of the common prefix of two bodies."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
