"""Lists of runs: SQL selects by the stored summaries; outdated summaries are computed on the fly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any

from playhead_receiver.storage.runs.costs import NANO
from playhead_receiver.storage.runs.listing import (
    YES_OR_NO,
    OrderKey,
    asks_for,
    order_of,
    parse_cursor,
)
from playhead_receiver.storage.sql.reading.large_runs import LargeRuns
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sql.reading.run_words import KINDS, WORDS
from playhead_receiver.storage.sql.reading.summaries import (
    COLUMNS,
    OPEN_STATES,
    STATES,
    StoredRun,
    stored_run,
)
from playhead_receiver.storage.values.run_summaries import Query, RunSummary

AT_ONCE = 128
"""Runs that a list reads at a time if an index gives the order."""
SORTED_AT_ONCE = 4096
"""Runs that a list reads at a time if each read has to sort all runs."""
NAMED = 1000
"""Most trace ids in one statement; if there are more, runs are filtered after the read."""

_MEASURES = {
    "started": "run.started_ns",
    "duration": "duration_ns",
    "cost": "cost",
    "tokens": "tokens",
    "steps": "steps",
    "errors": "errors",
}


class RunLists:
    """Answers queries for runs, from any thread."""

    def __init__(self, reader: SqlReader, large: LargeRuns) -> None:
        self._reader = reader
        self._large = large

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries of the runs that ``query`` selects, in its order."""
        after = parse_cursor(query)
        now_ns = time.time_ns()
        rows = self._reader.all(f"SELECT {COLUMNS} FROM run WHERE stale > 0 OR state IS NULL")
        changing = {row[0]: stored_run(row) for row in rows}
        states = STATES.get(query.status, OPEN_STATES)
        kept = [self._up_to_date(query, after, state) for state in states]
        stored = (one for one in merge(*kept, key=_order_key) if one[1].row.trace_id not in changing)
        found = merge(stored, self._changing(query, after, changing, now_ns), key=_order_key)
        return islice(self._answers(query, found, now_ns), query.limit)

    def run_named(self, name: str) -> RunSummary | None:
        """The run with exactly this name; None if there is none."""
        return next(iter(self._where("name = ?", name)), None)

    def runs_from(self, low: bytes, high: bytes, limit: int) -> list[RunSummary]:
        """At most ``limit`` runs whose trace id lies between ``low`` and ``high``, both included."""
        return self._where("trace_id BETWEEN ? AND ? ORDER BY trace_id LIMIT ?", low, high, limit)

    def runs_with_span(self, span_id: bytes, limit: int) -> list[RunSummary]:
        """At most ``limit`` runs that have a span with this id.

        No index begins with the span id: each run is looked up in the index of its spans.
        """
        has = " OR ".join(
            f"EXISTS (SELECT 1 FROM {table} WHERE {table}.trace_id = run.trace_id AND span_id = ?)"
            for table in ("span", "pending")
        )
        return self._where(f"{has} ORDER BY trace_id LIMIT ?", span_id, span_id, limit)

    def run_names(self) -> list[str]:
        """All names, newest first."""
        return [row[0] for row in self._reader.all("SELECT name FROM run ORDER BY started_ns DESC")]

    def _where(self, condition: str, *values: Any) -> list[RunSummary]:
        with self._reader.connection() as db:
            rows: Any = db.execute(f"SELECT {COLUMNS} FROM run WHERE {condition}", values)
            return self._large.summaries(db, [stored_run(row) for row in rows], time.time_ns())

    def _answers(
        self, query: Query, found: Iterator[tuple[OrderKey, StoredRun]], now_ns: int
    ) -> Iterator[RunSummary]:
        wanted = (run for _, run in found if query.traces is None or run.row.trace_id in query.traces)
        while some := list(islice(wanted, min(query.limit, AT_ONCE))):
            with self._reader.connection() as db:
                said = self._large.summaries(db, some, now_ns)
            yield from (one for one in said if asks_for(query, one))

    def _changing(
        self, query: Query, after: OrderKey | None, runs: dict[bytes, StoredRun], now_ns: int
    ) -> list[tuple[OrderKey, StoredRun]]:
        """Runs with outdated summaries, sorted; summaries are computed only if the order needs them."""
        if query.sort == "started":
            sign = 1 if query.ascending else -1
            places = [(sign * run.row.started_ns, run.row.trace_id.hex()) for run in runs.values()]
        else:
            with self._reader.connection() as db:
                said = self._large.summaries(db, list(runs.values()), now_ns)
                places = [order_of(one, query) for one in said]
        found = zip(places, runs.values(), strict=True)
        begin = None if after is None else _order(after, query)
        return sorted((one for one in found if begin is None or one[0] > begin), key=_order_key)

    def _up_to_date(
        self, query: Query, after: OrderKey | None, state: str | None
    ) -> Iterator[tuple[OrderKey, StoredRun]]:
        """Runs selected by their stored summaries, which may be outdated for runs that change.

        ``state``: the stored state, so that an index gives the order; None: any.
        """
        source, conditions, values = _conditions(query)
        if state is not None:
            conditions, values = [*conditions, "state = ?"], [*values, state]
        measure = _MEASURES[query.sort]
        if source != "run" and query.sort == "started":
            measure = "run_word.started_ns"
        sign, way = (">", "ASC") if query.ascending else ("<", "DESC")
        chunk = AT_ONCE if query.sort == "started" else SORTED_AT_ONCE
        chunk = max(1, min(chunk, query.limit))
        columns = ", ".join(f"run.{name}" for name in COLUMNS.split(", "))
        while True:
            behind, bounds = "", list[Any]()
            if after is not None:
                behind = f" AND {measure} {sign}= ? AND ({measure} {sign} ? OR run.trace_id > ?)"
                bounds = [after[0], after[0], bytes.fromhex(after[1])]
            rows = self._reader.all(
                f"SELECT {measure}, {columns} FROM {source} WHERE {' AND '.join(conditions)}{behind}"
                f" ORDER BY {measure} {way}, run.trace_id LIMIT ?",
                (*values, *bounds, chunk),
            )
            for at, *row in rows:
                yield _order((at, row[0].hex()), query), stored_run(tuple(row))
            if len(rows) < chunk:
                return
            after = rows[-1][0], rows[-1][1].hex()
            chunk = min(chunk * 4, SORTED_AT_ONCE)


def _order_key(one: tuple[OrderKey, StoredRun]) -> OrderKey:
    return one[0]


def _order(place: OrderKey, query: Query) -> OrderKey:
    return (place[0] if query.ascending else -place[0]), place[1]


def _conditions(query: Query) -> tuple[str, list[str], list[Any]]:
    """Source tables, conditions and their values. What depends on the clock is left to `asks_for`."""
    source, wanted, values = "run", list[str](), list[Any]()

    def want(condition: str, *given: Any) -> None:
        wanted.append(condition)
        values.extend(given)

    words = [(name, getattr(query, name, None)) for name in WORDS]
    for name, word in (*words, *query.words):
        if word is None:
            continue
        kind = KINDS[name]
        if word == "no" and name in YES_OR_NO:
            if name == "loop":  # whether a run is stuck depends on the clock too
                want(
                    "run.trace_id NOT IN (SELECT other.trace_id FROM run_word AS other"
                    " WHERE other.kind = ? AND other.word = 'yes')",
                    kind,
                )
            continue
        if source == "run" and query.sort == "started":
            source = "run_word CROSS JOIN run ON run.trace_id = run_word.trace_id"
            want("run_word.kind = ? AND run_word.word = ?", kind, word)
        else:
            want(
                "run.trace_id IN (SELECT other.trace_id FROM run_word AS other"
                " WHERE other.kind = ? AND other.word = ?)",
                kind,
                word,
            )
    if query.origin:
        want(
            "run.trace_id IN (SELECT other.trace_id FROM run AS other WHERE other.origin <> ''"
            " AND other.origin >= ? AND other.origin < ?)",
            query.origin,
            query.origin + "~",
        )
    if query.mark is not None:
        want("run.trace_id IN (SELECT mark.trace_id FROM mark WHERE mark.word = ?)", query.mark)
    want("summary IS NOT NULL")
    if query.traces is not None and len(query.traces) <= NAMED:
        want(f"run.trace_id IN ({', '.join('?' * len(query.traces)) or 'NULL'})", *query.traces)
    if query.mode == "record":
        want("mode NOT IN ('replay', 'service')")
    elif query.mode is not None:
        want("mode = ?", query.mode)
    if query.has_errors is not None:
        want("errors > 0" if query.has_errors else "errors = 0")
    for column, bound, sign in (
        ("run.started_ns", query.started_from_ns, ">="),
        ("run.started_ns", query.started_before_ns, "<"),
        ("duration_ns", query.duration_from_ns, ">="),
        ("duration_ns", query.duration_below_ns, "<"),
        ("tokens", query.tokens_from, ">="),
        ("tokens", query.tokens_below, "<"),
        ("steps", query.steps_from, ">="),
        ("steps", query.steps_below, "<"),
        ("cost", query.cost_from_usd, ">="),
        ("cost", query.cost_below_usd, "<"),
    ):
        if bound is not None:
            scaled = round(bound * NANO) if column == "cost" else bound
            want(f"{column} {sign} ?" + (" AND cost >= 0" if column == "cost" else ""), scaled)
    return source, wanted, values
