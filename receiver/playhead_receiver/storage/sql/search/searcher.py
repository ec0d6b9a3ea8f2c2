"""Reads content for a full text index, and turns its answers into hits. Engine-neutral.

The row id of a text is its address; the row id of a fact is its position.
"""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import CorruptTape, PlayheadError, StoreError, StoreUnavailable
from playhead_core.facts import Fact
from playhead_core.otlp import attributes_of
from playhead_core.otlp.log_records import log_line
from playhead_core.reports import NAMES, report_of
from playhead_receiver.storage.api.search import Hit, Lag, TraceFilter
from playhead_receiver.storage.api.store import OF_ONE_RUN, Store
from playhead_receiver.storage.content.plain_words import plain_text, words_of_log
from playhead_receiver.storage.content.texts import PLACE_BITS, TEXT, Texts, address_of, frame_of
from playhead_receiver.storage.content.words import phrases, words
from playhead_receiver.storage.runs.attribute_keys import RecentKeys, keys_of_log
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.search.searched_span import (
    SearchedSpan,
    searched_short_span,
    searched_span,
)
from playhead_receiver.storage.sql.search.text_references import TextReference, TextReferences
from playhead_receiver.storage.values.run_summaries import Need
from playhead_receiver.storage.values.stored import StoredSpan
from playhead_receiver.storage.writing.prepare import open_run
from playhead_receiver.storage.writing.recent_bundles import RecentBundle, RecentBundles
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from playhead_receiver.storage.content.references import References
    from playhead_receiver.storage.spans.whole_spans import Deriver

BUNDLES_AT_ONCE, RUNS_AT_ONCE = 256, 64
"""Most bundles, and most runs of facts, that one transaction indexes."""
CHARACTERS_AT_ONCE = 8 * 1024 * 1024
"""A transaction takes no further bundle after so many characters of text."""
LONGEST_BYTES = 4 * 1024 * 1024
"""Indexed bytes of a text, from its beginning."""
AROUND = 60
"""Characters of an excerpt on either side of the match."""
TEXT_WORDS, FACT_WORDS = "text_words", "fact_words"
"""The two tables of an index: rows are addresses of texts, and positions of facts."""
NEEDS = 8
"""Most needs in one query; of more, the most selective are used."""
Rows: TypeAlias = Callable[[str, Sequence[Any]], Iterable[Any]]
"""Executes a query: takes SQL with ``?`` and values, returns rows."""
INDEXED_FACTS = frozenset((e.PLAYHEAD_EXCHANGE_REQUEST, e.PLAYHEAD_CONTROL_EDIT, e.PLAYHEAD_EFFECT))
"""Facts whose bodies are indexed. Responses are indexed as part of the spans derived from them."""
PATIENCE_S = 30.0
"""How long the indexing of a bundle waits for the facts that its spans refer to."""
REFERENCE = b"_ref"
"""Occurs in every span that refers to content elsewhere."""
_WIRE = a.PLAYHEAD_WIRE.encode()
ReadSpan: TypeAlias = tuple[SearchedSpan, StoredSpan | None]
"""A span of a bundle as the index sees it, and itself if it was read from the store."""


class Searcher(ABC):
    """Reads stored content for an index, and makes hits of its matches. An engine keeps the index."""

    HAS = ""
    """SQL condition: the keys of a row of `signature` contain the key given as a value."""

    def __init__(
        self,
        reader: SqlReader,
        store: Store,
        recent: RecentBundles,
        references: References | None = None,
    ) -> None:
        """``recent``: bundles that need not be read from the store.

        ``references``: reads content that spans refer to, so that it is indexed with them.
        """
        self._recent = recent
        self._references = references
        self._reader = reader
        self._store = store
        self._recent_keys = RecentKeys()
        self._waits = (0, 0.0)
        """The bundle that waits for facts, and until when (monotonic seconds)."""

    @abstractmethod
    def index(self) -> int:
        """Index some more of the store; 0 if all of it is, or another process does it now."""

    @abstractmethod
    def unindex(self) -> None:
        """Delete the index."""

    @abstractmethod
    def forget(self) -> int:
        """Remove content from the index that was deleted from the store.

        Returns the last row of `unsearch` that the caller is to delete; 0 if there is none.
        """

    @abstractmethod
    def lag(self) -> Lag:
        """How far the index is behind the store."""

    @abstractmethod
    def search(self, text: str, limit: int, trace_filter: TraceFilter | None = None) -> list[Hit]:
        """Where all words occur together, newest first. `UsageError` if ``text`` has no word."""

    @abstractmethod
    def having(self, needs: Sequence[Need]) -> set[bytes] | None:
        """Ids of the traces that may have, for each need, one of its keys; None without an index."""

    def _deriver(self) -> Deriver:
        from playhead_receiver.storage.spans.whole_spans import Deriver

        return Deriver(self._store)

    def _read_on(
        self,
        bundle: int,
        position: int,
        put: Callable[[str, int, str], None],
        sign: Callable[[int, bytes, bytes], None],
    ) -> tuple[int, int, int]:
        """Read some of what was stored after a bundle and a position, and pass its words to ``put``.

        ``put`` gets a table, a row and words. ``sign`` gets a bundle, its trace, and those of its keys
        that no older bundle of the trace has. Returns how many bundles and runs of facts were read, and
        the last bundle and position read.
        """
        bundles = self._reader.all(
            "SELECT id, trace_id FROM bundle WHERE id > ? ORDER BY id LIMIT ?", (bundle, BUNDLES_AT_ONCE)
        )
        runs = self._reader.all(
            "SELECT position, last, data, blobs FROM fact_run WHERE position > ?"
            " ORDER BY position LIMIT ?",
            (position, RUNS_AT_ONCE),
        )
        unread = deque(id for id, _ in bundles if self._recent.get(id) is None)
        deriver, texts = self._deriver(), self._reader.texts(unread)
        count, characters = len(runs), 0
        for id, trace_id in bundles:
            if characters >= CHARACTERS_AT_ONCE:
                break
            try:
                recent = self._recent.get(id)
                spans = (
                    self._spans_of(id, trace_id, texts)
                    if recent is None
                    else self._recent_spans(id, trace_id, texts, recent)
                )
                waited_for = [stored for one, stored in spans.values() if stored and one.refers]
                if self._must_wait(id, waited_for, deriver):
                    break
                span_texts = {
                    place: self._text_of_span(stored, one, deriver) if stored else one.words
                    for place, (one, stored) in spans.items()
                }
                logs = self._logs_of(id, texts, recent)
                span_texts |= {place: words_of_log(otlp) for place, otlp in logs.items()}
                keys = self._recent_keys.fresh(
                    trace_id,
                    (
                        *(one.keys for one, _ in spans.values()),
                        *(keys_of_log(log_line(otlp)) for otlp in logs.values()),
                    ),
                )
                if keys:
                    sign(id, trace_id, keys)
                items = texts.items(id) if recent is None else recent.items
                for place, text in _texts_of(items, span_texts):
                    put(TEXT_WORDS, address_of(id, place), text)
                    characters += len(text)
            except StoreUnavailable:
                raise
            except (*OF_ONE_RUN, StoreError) as problem:
                # Damaged, or deleted meanwhile: it is not indexed. `verify` reports damage.
                log.warning("bundle %d cannot be searched: %r", id, problem)
            bundle = id
            count += 1
        for at, last, data, blobs in runs:
            for fact in self._facts_of(data, blobs):
                said = ""
                with suppress(*OF_ONE_RUN):
                    said = _words_of_fact(fact)
                if said:
                    put(FACT_WORDS, at - last + fact.seq, said)
            position = at
        self._recent.drop(bundle)
        return count, bundle, position

    def _facts_of(self, data: bytes, blobs: bytes | None) -> list[Fact]:
        """The facts of a frame; none if the frame is damaged, or a blob of it is damaged or missing."""
        try:
            return open_run(data, blobs, self._reader.blobs)
        except StoreUnavailable:
            raise
        except (CorruptTape, StoreError):
            return []

    def _having(self, needs: Sequence[Need], bundle: int, rows: Rows) -> set[bytes]:
        """Traces that have a key of each need, and those with spans after a bundle or unfinished spans.

        ``rows`` queries the index.
        """
        wanted = sorted(needs, key=len)[:NEEDS]
        bits = " + ".join(
            f"CASE WHEN {' OR '.join([self.HAS] * len(need))} THEN {1 << bit} ELSE 0 END"
            for bit, need in enumerate(wanted)
        )
        sql = f"SELECT trace_id, met FROM (SELECT trace_id, {bits} AS met FROM signature) AS signed"
        met: dict[bytes, int] = {}
        for trace_id, found in rows(f"{sql} WHERE met > 0", [key for need in wanted for key in need]):
            met[trace_id] = met.get(trace_id, 0) | found
        traces = {trace_id for trace_id, found in met.items() if found == (1 << len(wanted)) - 1}
        for sql, values in (
            ("SELECT DISTINCT trace_id FROM bundle WHERE id > ?", (bundle,)),
            ("SELECT DISTINCT trace_id FROM pending", ()),
        ):
            traces.update(row[0] for row in self._reader.all(sql, values))
        return traces

    def _lag(self, bundle: int, position: int) -> Lag:
        """How much is stored after a bundle and a position."""
        bundles = self._reader.one("SELECT count(*) FROM bundle WHERE id > ?", (bundle,))
        runs = self._reader.one("SELECT count(*) FROM fact_run WHERE position > ?", (position,))
        return Lag(bundles[0] if bundles else 0, runs[0] if runs else 0)

    def _hits(
        self,
        texts: list[int],
        facts: list[int],
        text: str,
        limit: int,
        trace_filter: TraceFilter | None = None,
    ) -> list[Hit]:
        """The hits for matching rows of the index, newest first; ``text``: the search text."""
        hits = [
            *islice(self._text_hits(texts, text, trace_filter), limit),
            *islice(self._fact_hits(facts, text, trace_filter), limit),
        ]
        hits.sort(key=lambda hit: hit.time_ns, reverse=True)
        return hits[:limit]

    def _spans_of(self, id: int, trace_id: bytes, texts: Texts) -> dict[int, ReadSpan]:
        """The readable spans of a bundle, by place."""
        rows = self._reader.all(
            "SELECT place, span_id, resource.data FROM span JOIN resource ON resource.id = span.resource"
            " WHERE bundle = ?",
            (id,),
        )
        found: dict[int, ReadSpan] = {}
        for place, span_id, resource in rows:
            try:
                stored = StoredSpan(trace_id, span_id, resource + texts.span(id, place))
            except PlayheadError:  # unreadable content is not found; `verify` reports it
                continue
            found[place] = searched_span(stored.otlp), stored
        return found

    def _recent_spans(
        self, id: int, trace_id: bytes, texts: Texts, recent: RecentBundle
    ) -> dict[int, ReadSpan]:
        """As `_spans_of`. Of a recent bundle, only spans whose words depend on all of them are read."""
        found: dict[int, ReadSpan] = {}
        for place, span in recent.spans.items():
            short = span.short(recent.items[place])
            if short is not None and REFERENCE not in short.otlp and _WIRE not in short.otlp:
                if REFERENCE not in b" ".join(short.long_texts):
                    found[place] = searched_short_span(span.resource, short), None
                    continue
            try:
                otlp = span.resource + texts.span(id, place)
            except PlayheadError:  # as in `_spans_of`
                continue
            found[place] = searched_span(otlp), StoredSpan(trace_id, span.span_id, otlp)
        return found

    def _logs_of(self, id: int, texts: Texts, recent: RecentBundle | None) -> dict[int, bytes]:
        """The readable log records of a bundle, by place, without their resource."""
        if recent is None:
            places = [
                row[0] for row in self._reader.all("SELECT place FROM log WHERE bundle = ?", (id,))
            ]
        else:
            places = recent.logs
        found: dict[int, bytes] = {}
        for place in places:
            item = None if recent is None else recent.items[place]
            with suppress(PlayheadError):
                found[place] = item if isinstance(item, bytes) else texts.span(id, place)
        return found

    def _text_of_span(self, stored: StoredSpan, searched: SearchedSpan, deriver: Deriver) -> str:
        """The words of a span, without its texts that are stored separately."""
        parts = [searched.words, _answer(deriver, stored) if searched.refers else ""]
        if self._references is not None and REFERENCE in stored.otlp:
            at = attributes_of(ResourceSpans.FromString(stored.otlp).scope_spans[0].spans[0].attributes)
            parts += (plain_text(data[:LONGEST_BYTES]) for data in self._references.contents(at))
        return " ".join(parts)

    def _must_wait(self, id: int, spans: list[StoredSpan], deriver: Deriver) -> bool:
        """Whether to wait for facts that these spans of a bundle refer to and that may still arrive."""
        if all(map(deriver.is_whole, spans)):
            return False
        if self._waits[0] != id:
            self._waits = (id, time.monotonic() + PATIENCE_S)
        return time.monotonic() < self._waits[1]

    def _text_hits(
        self, addresses: list[int], text: str, trace_filter: TraceFilter | None
    ) -> Iterator[Hit]:
        texts = self._reader.texts()
        deriver, references = self._deriver(), TextReferences(self._reader, texts)
        for address in addresses:
            excerpt: str | None = None
            try:
                for reference in references.of(address):
                    if trace_filter is not None and not trace_filter(reference.trace_id):
                        continue
                    if excerpt is None:
                        excerpt = _excerpt(self._text_at(address, reference, texts, deriver), text)
                    ids = reference.trace_id.hex(), reference.span_id.hex()
                    yield Hit(*ids, reference.start_ns, excerpt, log=reference.log)
                    if trace_filter is None:
                        break
            except StoreUnavailable:
                raise
            except PlayheadError:  # unreadable content is not found; `verify` reports it
                continue

    def _text_at(self, address: int, reference: TextReference, texts: Texts, deriver: Deriver) -> str:
        """The text in which the match was found."""
        bundle, place = frame_of(address), address & (1 << PLACE_BITS) - 1
        if reference.resource is None:
            return _whole(texts, address, texts.items(bundle)[place])
        if reference.log:
            return words_of_log(texts.span(bundle, place))
        otlp = reference.resource + texts.span(bundle, place)
        stored = StoredSpan(reference.trace_id, reference.span_id, otlp)
        return self._text_of_span(stored, searched_span(otlp), deriver)

    def _fact_hits(
        self, positions: list[int], text: str, trace_filter: TraceFilter | None
    ) -> Iterator[Hit]:
        facts: dict[int, Fact] = {}
        for position in positions:  # descending, so each run of facts is loaded once
            if position not in facts:
                facts = self._facts_around(position)
            fact = facts.get(position)
            if fact is None or not fact.trace_id:
                continue
            if trace_filter is None or trace_filter(fact.trace_id):
                excerpt = _excerpt(_words_of_fact(fact), text)
                ids = fact.trace_id.hex(), fact.span_id.hex()
                effect = str(fact.attributes.get(a.PLAYHEAD_EFFECT_KIND, ""))
                yield Hit(*ids, fact.time_ns, excerpt, not effect, effect)

    def _facts_around(self, position: int) -> dict[int, Fact]:
        """The run of facts that contains a position, by position."""
        found: Any = self._reader.one(
            "SELECT position, last, data, blobs FROM fact_run WHERE position >= ?"
            " ORDER BY position LIMIT 1",
            (position,),
        )
        if found is None:
            return {}
        at, last, data, blobs = found
        return {at - last + fact.seq: fact for fact in self._facts_of(data, blobs)}


def _texts_of(items: list[Any], said: dict[int, str]) -> Iterator[tuple[int, str]]:
    """The searchable texts of a bundle, with the indexes of its items. ``said``: those of its spans."""
    for place, item in enumerate(items):
        if place in said:
            yield place, said[place]
        elif isinstance(item, bytes):
            yield place, plain_text(item[:LONGEST_BYTES])
        elif item is not None and item[0] == TEXT:
            text = " ".join(plain_text(part) for part in item[2:] if isinstance(part, bytes))
            if text:
                yield place, text


def _whole(texts: Texts, address: int, item: Any) -> str:
    if item is None or isinstance(item, bytes):
        return plain_text(texts.text(address))
    return " ".join(plain_text(part) for part in item[2:] if isinstance(part, bytes))


def _words_of_fact(fact: Fact) -> str:
    if fact.name in NAMES:
        report = report_of(fact.name, fact.attributes)
        return "" if report is None else plain_text(json.dumps(report.fields).encode())
    if fact.name not in INDEXED_FACTS or fact.body is None or not fact.body.inline:
        return ""
    data = fact.body.inline[:LONGEST_BYTES]
    return "" if b"\0" in data[:1024] else plain_text(data)


def _answer(deriver: Deriver, stored: StoredSpan) -> str:
    """The output messages of a span that refers to its exchange."""
    try:
        said = attributes_of(deriver.whole(stored).scope_spans[0].spans[0].attributes)
    except PlayheadError:  # unreadable content is not found; `verify` reports it
        return ""
    return plain_text(str(said.get(a.GEN_AI_OUTPUT_MESSAGES, "")).encode())


def _excerpt(text: str, search: str) -> str:
    """Some characters of a text around the first word that is searched for."""
    wanted = {word for phrase, _ in phrases(search) for word in phrase}
    at = next((word.begin for word in words(text) if word.folded in wanted), 0)
    begin, end = max(0, at - AROUND), min(len(text), at + AROUND)
    shown = " ".join(text[begin:end].split())
    return ("…" if begin else "") + shown + ("…" if end < len(text) else "")
