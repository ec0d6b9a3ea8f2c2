"""Process instances in the tables: what is known of each, and which of its facts are here."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import apsw

from playhead_receiver.span_view import resource_summary
from playhead_receiver.store.fold import HEARTBEAT_NS
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import MalformedOtlp
from playhead_semconv.facts import Fact

LONGEST_HEARTBEAT_MS = 24 * 3600 * 1000


@dataclass(slots=True)
class Instance:
    """What the writer knows of a process instance: its row, and what of it is here."""

    row: int
    resource: bytes | None
    trace_id: bytes = b""
    span_id: bytes = b""
    agent: str = ""
    started_ns: int = 0
    seen_ns: int = 0
    heartbeat_ns: int = HEARTBEAT_NS
    exited: bool = False
    failed: bool = False
    last_seq: int = -1
    firsts: list[int] = field(default_factory=list[int])
    lasts: list[int] = field(default_factory=list[int])

    def has(self, seq: int) -> bool:
        """Whether the fact of this number is here."""
        place = bisect_right(self.firsts, seq) - 1
        return place >= 0 and seq <= self.lasts[place]

    def fold(self, fact: Fact) -> None:
        """What a process fact says of its process."""
        self.last_seq = max(self.last_seq, number_of(fact, a.PLAYHEAD_PROCESS_LAST_SEQ, -1))
        if fact.name == e.PLAYHEAD_PROCESS_START:
            self.trace_id, self.span_id = fact.trace_id, fact.span_id
            self.agent = text_of(fact, a.PLAYHEAD_RUN_AGENT)
            self.started_ns = fact.time_ns
            interval_ms = number_of(fact, a.PLAYHEAD_PROCESS_HEARTBEAT_MS, 0)
            if 0 < interval_ms <= LONGEST_HEARTBEAT_MS:
                self.heartbeat_ns = interval_ms * 1_000_000
        elif fact.name == e.PLAYHEAD_PROCESS_EXIT:
            self.exited = True
            code = number_of(fact, a.PLAYHEAD_PROCESS_EXIT_CODE, 0)
            self.failed = code != 0 or a.PLAYHEAD_ERROR_QUALNAME in fact.attributes


class Instances:
    """Rows of instances, remembered between commits until `forget`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._db = connection
        self._known: dict[bytes, Instance] = {}

    def forget(self) -> None:
        """Forget all: it is read again when it is needed."""
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, instance: bytes) -> Instance:
        """What is known of an instance; it has a row from now on."""
        known = self._known.get(instance)
        if known is not None:
            return known
        row: Any = self._db.execute(
            "SELECT id, resource, trace_id, span_id, agent, started_ns, seen_ns, heartbeat_ns, exited,"
            " failed, last_seq FROM instance WHERE instance = ?",
            (instance,),
        ).get
        if row is None:
            self._db.execute(
                "INSERT INTO instance VALUES (NULL, ?, NULL, x'', x'', '', 0, 0, ?, 0, 0, -1)",
                (instance, HEARTBEAT_NS),
            )
            known = Instance(self._db.last_insert_rowid(), None)
        else:
            known = _recall(row)
            for first, last in self._db.execute(
                "SELECT first, last FROM fact_range WHERE instance = ? ORDER BY first", (known.row,)
            ):
                known.firsts.append(int(first))  # type: ignore[arg-type]
                known.lasts.append(int(last))  # type: ignore[arg-type]
        self._known[instance] = known
        return known

    def set_resource(self, instance: bytes, resource: bytes) -> None:
        """Keep the OTLP resource of an instance; the first one stays."""
        known = self.get(instance)
        if known.resource is None:
            known.resource = resource
            self._db.execute("UPDATE instance SET resource = ? WHERE id = ?", (resource, known.row))

    @staticmethod
    def agent_of(known: Instance) -> str:
        """Name of the agent that an instance runs, as far as it is known."""
        if known.agent:
            return known.agent
        if known.resource is None:
            return ""
        try:
            return resource_summary(known.resource).service
        except MalformedOtlp:
            return ""

    def extend_range(self, known: Instance, first: int, last: int) -> None:
        """Add a stretch of numbers that was not there, joined with its neighbours."""
        place = bisect_right(known.firsts, first)
        joins_before = place > 0 and known.lasts[place - 1] == first - 1
        joins_after = place < len(known.firsts) and known.firsts[place] == last + 1
        if joins_after:
            last = known.lasts[place]
            self._db.execute(
                "DELETE FROM fact_range WHERE instance = ? AND first = ?",
                (known.row, known.firsts[place]),
            )
            del known.firsts[place], known.lasts[place]
        if joins_before:
            known.lasts[place - 1] = last
            self._db.execute(
                "UPDATE fact_range SET last = ? WHERE instance = ? AND first = ?",
                (last, known.row, known.firsts[place - 1]),
            )
        else:
            known.firsts.insert(place, first)
            known.lasts.insert(place, last)
            self._db.execute("INSERT INTO fact_range VALUES (?, ?, ?)", (known.row, first, last))

    def save(self, known: Instance) -> None:
        """Write the row of an instance."""
        self._db.execute(
            "UPDATE instance SET trace_id = ?, span_id = ?, agent = ?, started_ns = ?, seen_ns = ?,"
            " heartbeat_ns = ?, exited = ?, failed = ?, last_seq = ? WHERE id = ?",
            (
                known.trace_id,
                known.span_id,
                known.agent,
                known.started_ns,
                known.seen_ns,
                known.heartbeat_ns,
                known.exited,
                known.failed,
                known.last_seq,
                known.row,
            ),
        )


def _recall(row: Any) -> Instance:
    id, resource, trace_id, span_id, agent, started_ns, seen_ns, heartbeat_ns, exited, failed, last = row
    return Instance(
        row=id,
        resource=resource,
        trace_id=trace_id,
        span_id=span_id,
        agent=agent,
        started_ns=started_ns,
        seen_ns=seen_ns,
        heartbeat_ns=heartbeat_ns,
        exited=bool(exited),
        failed=bool(failed),
        last_seq=last,
    )


def text_of(fact: Fact, name: str) -> str:
    """A text attribute, empty if it is not there or no text."""
    value = fact.attributes.get(name)
    return value if isinstance(value, str) else ""


def number_of(fact: Fact, name: str, default: int) -> int:
    """A whole number, ``default`` if it is not there or none."""
    value = fact.attributes.get(name)
    return value if type(value) is int else default
