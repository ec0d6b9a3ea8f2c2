"""Collects what a transaction will write, so that each table gets one statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import psycopg

from playhead_receiver.store.postgres.connections.database import clean
from playhead_receiver.store.writing.known_instances import Instance, said_by

Row: TypeAlias = tuple[Any, ...]


class TouchedRun(msgspec.Struct):
    """Changes of a run."""

    started_ns: int
    arrived_ns: int
    stale: int = 0
    conversation: str = ""
    loose: int = 0
    mode: str = ""
    """Empty: unchanged."""
    origin: str = ""
    serves: bool = False


@dataclass
class Draft:
    """New rows by table, and changes of existing rows."""

    fact_runs: list[Row] = field(default_factory=list[Row])
    blob_uses: list[Row] = field(default_factory=list[Row])
    chain: list[Row] = field(default_factory=list[Row])
    ranges: dict[tuple[int, int], int | None] = field(default_factory=dict[tuple[int, int], int | None])
    """(Instance, first) → last; None if the range has become part of another."""
    contents: dict[tuple[int, bytes], int] = field(default_factory=dict[tuple[int, bytes], int])
    parts: dict[Row, None] = field(default_factory=dict[Row, None])
    exchanges: dict[tuple[int, str], tuple[int, int]] = field(
        default_factory=dict[tuple[int, str], tuple[int, int]]
    )
    strands: list[Row] = field(default_factory=list[Row])
    instances: dict[int, Instance] = field(default_factory=dict[int, Instance])
    pending: dict[tuple[bytes, bytes], Row] = field(default_factory=dict[tuple[bytes, bytes], Row])
    come: list[Row] = field(default_factory=list[Row])
    """Trace and span ids of arrived spans whose processes record span starts."""
    spans: dict[tuple[bytes, bytes], Row] = field(default_factory=dict[tuple[bytes, bytes], Row])
    replaced: list[Row] = field(default_factory=list[Row])
    bundles: list[Row] = field(default_factory=list[Row])
    links: dict[Row, None] = field(default_factory=dict[Row, None])
    texts: dict[bytes, int] = field(default_factory=dict[bytes, int])
    new_runs: dict[bytes, Row] = field(default_factory=dict[bytes, Row])
    runs: dict[bytes, TouchedRun] = field(default_factory=dict[bytes, TouchedRun])
    members: dict[Row, None] = field(default_factory=dict[Row, None])
    agents: dict[str, int] = field(default_factory=dict[str, int])
    uses: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])

    def write(self, connection: psycopg.Connection, counters: Row) -> None:
        """Write everything, in one round trip to the server. The caller holds the transaction."""
        with connection.pipeline(), connection.cursor() as cursor:
            for sql, rows in self._statements():
                if rows:
                    columns = [[clean(one) for one in column] for column in zip(*rows, strict=True)]
                    cursor.execute(sql, columns)  # type: ignore[arg-type]
            cursor.execute(
                "UPDATE counter SET position = %s, bundle = %s, writes = %s, deletions = %s", counters
            )

    def _statements(self) -> list[tuple[str, list[Row]]]:
        counted = {"resource": list[Row](), "label": list[Row]()}
        for (table, row), count in self.uses.items():
            counted[table].append((row, count))
        gone = [key for key, last in self.ranges.items() if last is None]
        there = [(*key, last) for key, last in self.ranges.items() if last is not None]
        return [
            (_insert("fact_run", "int8 int8 int8 int8 bytea bytea"), self.fact_runs),
            (_insert("blob_use", "bytea int8"), self.blob_uses),
            (_insert("link", "int8 int8 bool bytea bytea bytea bytea"), self.chain),
            (
                "DELETE FROM fact_range USING unnest(%s::int8[], %s::int8[]) AS gone(instance, first)"
                " WHERE fact_range.instance = gone.instance AND fact_range.first = gone.first",
                gone,
            ),
            (
                _insert("fact_range", "int8 int8 int8")
                + " ON CONFLICT (instance, first) DO UPDATE SET last = excluded.last",
                there,
            ),
            (
                _insert("content", "int8 bytea int8") + " ON CONFLICT DO NOTHING",
                [(*key, seq) for key, seq in self.contents.items()],
            ),
            (_insert("blob_part", "int8 bytea int8") + " ON CONFLICT DO NOTHING", list(self.parts)),
            (
                _insert("exchange", "int8 text int8 int8") + " ON CONFLICT (instance, id) DO UPDATE"
                " SET first = least(exchange.first, excluded.first),"
                " last = greatest(exchange.last, excluded.last)",
                [(*key, *ends) for key, ends in self.exchanges.items()],
            ),
            (_insert("strand", "int8 bytea int8 bytea"), self.strands),
            (_INSTANCES, [(one.row, one.resource, *said_by(one)) for one in self.instances.values()]),
            (
                "DELETE FROM span USING unnest(%s::bytea[], %s::bytea[]) AS gone(trace_id, span_id)"
                " WHERE span.trace_id = gone.trace_id AND span.span_id = gone.span_id",
                self.replaced,
            ),
            (
                _insert("span", "int8 bytea bytea bytea int8 int8 bool bool" + " int8" * 9),
                list(self.spans.values()),
            ),
            (
                "INSERT INTO pending SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[],"
                " %s::int8[], %s::bool[], %s::text[], %s::int8[], %s::int8[])"
                " AS new(trace_id, span_id, parent, start_ns, step, model, instance, seq)"
                " WHERE NOT EXISTS (SELECT 1 FROM span WHERE span.trace_id = new.trace_id"
                " AND span.span_id = new.span_id) ON CONFLICT DO NOTHING",
                list(self.pending.values()),
            ),
            (
                "DELETE FROM pending USING unnest(%s::bytea[], %s::bytea[]) AS come(trace_id, span_id)"
                " WHERE pending.trace_id = come.trace_id AND pending.span_id = come.span_id",
                self.come,
            ),
            (_insert("bundle", "int8 bytea bytea"), self.bundles),
            (_insert("text_link", "int8 int8") + " ON CONFLICT DO NOTHING", list(self.links)),
            (
                _insert("text", "bytea int8")
                + " ON CONFLICT (digest) DO UPDATE SET address = excluded.address",
                list(self.texts.items()),
            ),
            (_NEW_RUNS, list(self.new_runs.values())),
            (
                _RUNS,
                [(trace_id, *msgspec.structs.astuple(run)) for trace_id, run in self.runs.items()],
            ),
            (
                _insert("run_instance", "bytea int8") + " ON CONFLICT DO NOTHING",
                list(self.members),
            ),
            (
                _insert("agent", "text int8") + " ON CONFLICT (word) DO UPDATE SET last = excluded.last",
                list(self.agents.items()),
            ),
            *((_USES.format(table=table), rows) for table, rows in counted.items()),
            *(
                (_UNUSED.format(table=table), [(row,) for row, count in rows if count <= 0])
                for table, rows in counted.items()
            ),
        ]


def _insert(table: str, types: str) -> str:
    return f"INSERT INTO {table} SELECT * FROM unnest({_arrays(types)})"


def _arrays(types: str) -> str:
    return ", ".join(f"%s::{type}[]" for type in types.split())


_NEW_RUNS = (
    "INSERT INTO run(trace_id, name, agent, started_ns, arrived_ns, stale, mode, origin, conversation)"
    f" SELECT *, 'record', '', '' FROM unnest({_arrays('bytea text text int8 int8 int8')})"
)
_RUNS = (
    "UPDATE run SET started_ns = least(run.started_ns, new.started_ns), arrived_ns = new.arrived_ns,"
    " stale = greatest(run.stale, new.stale), loose = run.loose + new.loose,"
    " conversation = CASE WHEN run.conversation = '' THEN new.conversation ELSE run.conversation END,"
    " origin = CASE WHEN new.mode = '' THEN run.origin ELSE new.origin END,"
    " mode = CASE WHEN new.serves AND coalesce(nullif(new.mode, ''), run.mode) = 'record'"
    " THEN 'service' WHEN new.mode = '' THEN run.mode ELSE new.mode END"
    f" FROM unnest({_arrays('bytea int8 int8 int8 text int8 text text bool')})"
    " AS new(trace_id, started_ns, arrived_ns, stale, conversation, loose, mode, origin, serves)"
    " WHERE run.trace_id = new.trace_id"
)
_INSTANCES = (
    "UPDATE instance SET resource = new.resource, trace_id = new.trace_id, span_id = new.span_id,"
    " agent = new.agent, started_ns = new.started_ns, seen_ns = new.seen_ns,"
    " heartbeat_ns = new.heartbeat_ns, exited = new.exited, failed = new.failed,"
    " last_seq = new.last_seq"
    f" FROM unnest({_arrays('int8 bytea bytea bytea text int8 int8 int8 bool bool int8')})"
    " AS new(id, resource, trace_id, span_id, agent, started_ns, seen_ns, heartbeat_ns, exited, failed,"
    " last_seq) WHERE instance.id = new.id"
)
_USES = (
    "UPDATE {table} SET uses = uses + new.count FROM unnest(%s::int8[], %s::int8[]) AS new(id, count)"
    " WHERE {table}.id = new.id"
)
_UNUSED = "DELETE FROM {table} WHERE id = ANY(%s::int8[]) AND uses <= 0"
