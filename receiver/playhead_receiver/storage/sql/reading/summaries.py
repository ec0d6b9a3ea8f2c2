"""Summaries of runs in the tables: read, computed from spans, and stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from playhead_core.reports import WORD_FIELDS
from playhead_receiver.storage.runs.listing import measure_of
from playhead_receiver.storage.runs.summary_fold import (
    InstanceRow,
    RunRow,
    SpanFold,
    fold_spans,
    summary_of,
    without_rings,
)
from playhead_receiver.storage.spans.span_view import Entry, ResourceSummary, resource_summary
from playhead_receiver.storage.sql.reading.living_processes import with_life
from playhead_receiver.storage.sql.reading.run_words import (
    DERIVED_KINDS,
    RunWords,
    words_in_spans,
    words_of,
    words_of_runs,
)
from playhead_receiver.storage.sql.tables.database import Db, ManyRows, Row
from playhead_receiver.storage.values.run_summaries import RunSummary
from playhead_receiver.storage.values.span_labels import Label, SpanRow, Usage
from playhead_receiver.storage.writing.prepare import PreparedSpan

_AT_ONCE = 500
"""Spans that one query fetches."""
COLUMNS = "trace_id, name, agent, mode, origin, started_ns, arrived_ns, conversation, stale, summary"

CURRENT = b"\xdc" + len(SpanFold.__struct_fields__).to_bytes(2, "big")
"""First bytes of an encoded `SpanFold`, with the number of its fields; less in earlier versions."""

_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[SpanFold] = msgspec.msgpack.Decoder(SpanFold)
_decode_label: msgspec.msgpack.Decoder[Label] = msgspec.msgpack.Decoder(Label)


class StoredRun(msgspec.Struct, frozen=True):
    """A row of ``run``."""

    row: RunRow
    stale: int
    """Position of the last change that outdated the stored summary; 0 if it is up to date."""
    kept: bytes | None
    """Its encoded `SpanFold`; None if none was stored yet."""

    @property
    def is_outdated(self) -> bool:
        """Whether there is no stored summary, or it is outdated."""
        return self.kept is None or self.stale > 0

    def fold(self) -> SpanFold:
        """The stored fold. `is_outdated` says whether there is a current one."""
        assert self.kept is not None
        return _decode.decode(self.kept)


def stored_run(columns: tuple[Any, ...]) -> StoredRun:
    """Convert a row that was read with `COLUMNS`."""
    return StoredRun(RunRow(*columns[:8]), columns[8], columns[9])


def summaries_of(
    db: Db,
    runs: Sequence[RunRow],
    folds: Sequence[SpanFold],
    now_ns: int,
    words: Mapping[bytes, RunWords] | None = None,
) -> list[RunSummary]:
    """The summaries of runs by the folds of their spans, with one query per further table for all.

    ``words``: those that come from the spans; None: as the table has them.
    """
    resources = {spans.resource for spans in folds if spans.resource}
    about = dict(among(db, "SELECT id, data FROM resource WHERE id IN", resources))
    members: dict[bytes, list[int]] = {}
    traces = [run.trace_id for run in runs]
    for trace_id, instance in among(
        db,
        "SELECT run_instance.trace_id, instance.id FROM run_instance JOIN instance"
        " ON instance.id = run_instance.instance WHERE run_instance.trace_id IN",
        traces,
        "ORDER BY started_ns, instance.id",
    ):
        members.setdefault(trace_id, []).append(instance)
    processes = instances_of(db, {one for some in members.values() for one in some})
    instances = with_life(db, processes)
    marks: dict[bytes, list[str]] = {}
    for trace_id, word in among(
        db, "SELECT trace_id, word FROM mark WHERE trace_id IN", traces, "ORDER BY word"
    ):
        marks.setdefault(trace_id, []).append(word)
    words = words_of_runs(db, traces) if words is None else words
    return [
        summary_of(
            msgspec.structs.replace(
                run,
                marks=marks.get(run.trace_id, ()),
                words=words.get(run.trace_id, {}),
            ),
            spans,
            _about(about[spans.resource]) if spans.resource in about else None,
            [instances[one] for one in members.get(run.trace_id, ())],
            now_ns,
        )
        for run, spans in zip(runs, folds, strict=True)
    ]


def among(db: Db, sql: str, values: Collection[Any], order: str = "") -> Iterable[Any]:
    """Rows whose column, which ends ``sql``, has one of ``values``; in ``order``."""
    if not values:
        return ()
    return db.execute(f"{sql} ({', '.join('?' * len(values))}) {order}", tuple(values))


def folded(db: Db, trace_id: bytes) -> SpanFold:
    """The aggregate of a run, computed again from its spans."""
    return fold_spans(span_rows(db, trace_id))


def span_rows(db: Db, trace_id: bytes) -> list[SpanRow]:
    """The spans of a run without their content, finished and pending, as a tree."""
    return without_rings([*_finished(db, trace_id), *_pending(db, trace_id)])


def ancestry(db: Db, trace_id: bytes, span_ids: Iterable[bytes]) -> list[SpanRow]:
    """These spans of a run and all their ancestors, without content; one read per tree level."""
    found: dict[bytes, SpanRow] = {}
    wanted = list(dict.fromkeys(span_ids))
    while wanted:
        for begin in range(0, len(wanted), _AT_ONCE):
            some = wanted[begin : begin + _AT_ONCE]
            for row in (*_pending(db, trace_id, some), *_finished(db, trace_id, some)):
                found[row.span_id] = row
        above = (found[id].parent for id in wanted if id in found)
        wanted = [id for id in dict.fromkeys(above) if id and id not in found]
    return list(found.values())


_SPAN = (
    "span_id:bytes parent:bytes start_ns:int end_ns:int failed:int local_root:int label:int input:int"
    " cached:int cache_write:int output:int reasoning:int resource:int"
)
_SPANS_AFTER = ManyRows(_SPAN, "span WHERE trace_id = ? AND span_id > ? ORDER BY span_id LIMIT ?")
_MOST_ROWS = 10_000
"""Rows that are fetched at once."""


def _finished(db: Db, trace_id: bytes, only: Sequence[bytes] = ()) -> Iterator[SpanRow]:
    """The spans of a run that have arrived; with ``only``, just those."""
    if only:
        yield from _span_rows(
            db, db.rows(ManyRows(_SPAN, f"span WHERE trace_id = ?{_in(only)}"), (trace_id, *only))
        )
        return
    after = b""
    while rows := db.rows(_SPANS_AFTER, (trace_id, after, _MOST_ROWS)):
        yield from _span_rows(db, rows)
        after = max(row[0] for row in rows)


def _span_rows(db: Db, rows: Sequence[Row]) -> Iterator[SpanRow]:
    stored = among(db, "SELECT id, data FROM label WHERE id IN", {row[6] for row in rows})
    labels = {number: label_of(data) for number, data in stored}
    for (
        id,
        parent,
        begin,
        end,
        failed,
        root,
        label,
        given,
        cached,
        written,
        put_out,
        thought,
        at,
    ) in rows:
        usage = Usage(given, cached, written, put_out, thought) if given or put_out else _NO_USAGE
        yield SpanRow(
            id, parent, begin, end, bool(failed), bool(root), labels.get(label, _NO_LABEL), usage, at
        )


def _pending(db: Db, trace_id: bytes, only: Sequence[bytes] = ()) -> Iterator[SpanRow]:
    """The spans of a run that have started and not arrived; with ``only``, just those."""
    rows: Any = db.execute(
        f"SELECT span_id, parent, start_ns, step, model FROM pending WHERE trace_id = ?{_in(only)}",
        (trace_id, *only),
    )
    for id, parent, begin, step, model in rows:
        label = Label(step=bool(step), model=model)
        yield SpanRow(id, parent, begin, None, local_root=not parent, label=label)


def _in(span_ids: Sequence[bytes]) -> str:
    return f" AND span_id IN ({', '.join('?' * len(span_ids))})" if span_ids else ""


def span_row(
    position: int, span: PreparedSpan, label: int, resource: int, bundle: int, place: int
) -> tuple[Any, ...]:
    """A row of ``span``, in the order of its columns.

    ``label``, ``resource``, ``bundle`` and ``place``: what the row refers to.
    """
    about, usage = span.summary, span.summary.usage
    return (
        position,
        about.trace_id,
        about.span_id,
        about.parent,
        about.start_ns,
        about.end_ns,
        about.failed,
        about.local_root,
        label,
        usage.input,
        usage.cached,
        usage.cache_write,
        usage.output,
        usage.reasoning,
        resource,
        bundle,
        place,
    )


def outdated(db: Db, limit: int) -> list[StoredRun]:
    """Runs with outdated summaries, those first that have been outdated for longest."""
    rows: Any = db.execute(f"SELECT {COLUMNS} FROM run WHERE stale > 0 ORDER BY stale LIMIT ?", (limit,))
    return [stored_run(row) for row in rows]


class ComputedSummary(msgspec.Struct, frozen=True):
    """A computed summary that is to be stored."""

    run: StoredRun
    spans: SpanFold
    summary: RunSummary


def compute_summary(db: Db, run: StoredRun, now_ns: int) -> ComputedSummary:
    """Compute the summary of a run."""
    trace_id = run.row.trace_id
    spans = folded(db, trace_id)
    words: dict[bytes, RunWords] | None = None
    if _is_older(run):
        found, written = words_in_spans(db, trace_id), words_of_runs(db, [trace_id]).get(trace_id, {})
        for field in WORD_FIELDS:  # facts and log records have reports, too
            if field in written:
                found[field] = list(dict.fromkeys([*written[field], *found.get(field, ())]))
        words = {trace_id: found}
    return ComputedSummary(run, spans, summaries_of(db, [run.row], [spans], now_ns, words)[0])


def _is_older(run: StoredRun) -> bool:
    """Whether an earlier version of playhead stored the summary."""
    return run.kept is not None and run.kept < CURRENT


def older(db: Db, after: bytes, limit: int) -> list[StoredRun]:
    """Runs whose summaries an earlier version stored, by trace id."""
    rows: Any = db.execute(
        f"SELECT {COLUMNS} FROM run WHERE trace_id > ? AND stale = 0 AND summary < ?"
        " ORDER BY trace_id LIMIT ?",
        (after, CURRENT, limit),
    )
    return [stored_run(row) for row in rows]


def store_summary(db: Db, computed: ComputedSummary) -> None:
    """Store a summary, unless something that changes it has arrived since. For the writer."""
    run, spans, said = computed.run.row, computed.spans, computed.summary
    state = said.status if said.status in ("success", "failure") else _open_state(spans)
    db.execute(
        "UPDATE run SET stale = 0, state = ?, duration_ns = ?, cost = ?, tokens = ?, steps = ?,"
        " errors = ?, summary = ? WHERE trace_id = ? AND stale = ? AND started_ns = ?",
        (
            state,
            measure_of(said, "duration"),
            measure_of(said, "cost"),
            measure_of(said, "tokens"),
            spans.steps,
            spans.errors,
            _encode(spans),
            run.trace_id,
            computed.run.stale,
            run.started_ns,
        ),
    )
    if not db.changes():
        return
    db.execute(
        f"UPDATE run_word SET started_ns = ? WHERE trace_id = ? AND kind IN ({DERIVED_KINDS})"
        " AND started_ns <> ?",
        (run.started_ns, run.trace_id, run.started_ns),
    )
    rows: Any = db.execute(
        "SELECT kind, word, started_ns FROM run_word WHERE trace_id = ?"
        f" AND kind NOT IN ({DERIVED_KINDS})",
        (run.trace_id,),
    )
    wanted = {(kind, word, run.started_ns) for kind, word in words_of(said)}
    if set(rows) != wanted:
        db.execute(
            f"DELETE FROM run_word WHERE trace_id = ? AND kind NOT IN ({DERIVED_KINDS})",
            (run.trace_id,),
        )
        for kind, word, started_ns in sorted(wanted):
            db.execute(
                "INSERT INTO run_word VALUES (?, ?, ?, ?)", (kind, word, started_ns, run.trace_id)
            )


STATES: Mapping[str | None, Sequence[str | None]] = {
    None: (None,),
    "success": ("success", "open-success"),
    "failure": ("failure", "open-failure"),
}
"""By wanted status: the stored states of runs that may have it. Default: `OPEN_STATES`."""
OPEN_STATES = ("open", "open-success", "open-failure")


def _open_state(spans: SpanFold) -> str:
    """The state of a run whose status depends on the clock, and on whether its root arrives."""
    if spans.top_failed is None:
        return "open"
    return "open-failure" if spans.top_failed else "open-success"


def differs(db: Db, run: StoredRun) -> bool:
    """Whether a summary that counts as up to date differs from what the spans say."""
    if run.stale or _is_older(run):
        return False
    return run.kept is None or _decode.decode(run.kept) != folded(db, run.row.trace_id)


_NO_USAGE = Usage()
_NO_LABEL = Label()


@lru_cache(maxsize=1024)
def _about(data: bytes) -> ResourceSummary:
    """The summary of a stored resource; ``data``: the beginning of `ResourceSpans`."""
    return resource_summary(Entry.FromString(data).resource)


@lru_cache(maxsize=4096)
def label_of(data: bytes) -> Label:
    """Decode a stored label."""
    return _decode_label.decode(data)


def instance_of(db: Db, row: int) -> InstanceRow:
    """What summaries need about a process instance, by its row."""
    return instances_of(db, [row])[row]


def instances_of(db: Db, rows: Collection[int]) -> dict[int, InstanceRow]:
    """As `instance_of`, for several instances; the result is by row."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for row, first, last in among(
        db, "SELECT instance, first, last FROM fact_range WHERE instance IN", rows, "ORDER BY first"
    ):
        ranges.setdefault(row, []).append((first, last))
    found: dict[int, InstanceRow] = {}
    for row, *columns in among(
        db,
        "SELECT id, instance, trace_id, span_id, started_ns, seen_ns, heartbeat_ns, exited, failed,"
        " last_seq FROM instance WHERE id IN",
        rows,
    ):
        instance, trace_id, span_id, started_ns, seen_ns, heartbeat_ns, exited, failed, last_seq = (
            columns
        )
        found[row] = InstanceRow(
            instance=instance,
            trace_id=trace_id,
            span_id=span_id,
            started_ns=started_ns,
            seen_ns=seen_ns,
            heartbeat_ns=heartbeat_ns,
            exited=bool(exited),
            failed=bool(failed),
            last_seq=last_seq,
            ranges=ranges.get(row, []),
        )
    return found
