"""State of process instances in the writer: their descriptions, and which facts are stored."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Fact
from playhead_core.tape.folds import is_inbound
from playhead_receiver.storage.runs.request_index import UNKNOWN, index_entries
from playhead_receiver.storage.runs.summary_fold import HEARTBEAT_NS
from playhead_receiver.storage.spans.span_view import LONGEST_WORD, resource_summary
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LONGEST_HEARTBEAT_MS = 24 * 3600 * 1000


@dataclass(slots=True)
class Instance:
    """State of one process instance: its row, its description, and its stored facts."""

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
    serves: bool = False
    """Whether it has received requests; if so, it has entries in the request index."""
    links: int = 0
    """Number of links of its chain."""
    tip: bytes = b""
    """Digest of the last link."""
    promised: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Fact numbers covered by imported links whose facts have not arrived yet."""

    def has(self, seq: int) -> bool:
        """Whether the fact with this number is stored."""
        place = bisect_right(self.firsts, seq) - 1
        return place >= 0 and seq <= self.lasts[place]

    def fold(self, fact: Fact) -> None:
        """Apply a process fact to this state."""
        self.last_seq = max(self.last_seq, number_of(fact, a.PLAYHEAD_PROCESS_LAST_SEQ, -1))
        if fact.name == e.PLAYHEAD_PROCESS_START:
            self.trace_id, self.span_id = fact.trace_id, fact.span_id
            self.agent = agent_of(fact)
            self.started_ns = fact.time_ns
            interval_ms = number_of(fact, a.PLAYHEAD_PROCESS_HEARTBEAT_MS, 0)
            if 0 < interval_ms <= LONGEST_HEARTBEAT_MS:
                self.heartbeat_ns = interval_ms * 1_000_000
        elif fact.name == e.PLAYHEAD_PROCESS_EXIT:
            self.exited = True
            code = number_of(fact, a.PLAYHEAD_PROCESS_EXIT_CODE, 0)
            self.failed = code != 0 or a.PLAYHEAD_ERROR_QUALNAME in fact.attributes

    def see(self, facts: list[Fact], now_ns: int) -> None:
        """Note the last sign of life, and the start time if the process has not reported it."""
        latest = min(max(fact.time_ns for fact in facts), now_ns)
        self.seen_ns = max(self.seen_ns, latest)
        if not self.started_ns:
            self.started_ns = facts[0].time_ns

    def name(self) -> str:
        """Name of its agent; empty if unknown."""
        if self.agent:
            return self.agent
        if self.resource is None:
            return ""
        try:
            return resource_summary(self.resource).service
        except MalformedOtlp:
            return ""

    def begins_runs(self, facts: list[Fact]) -> bool:
        """Whether ``facts`` contain an inbound request that is a run of its own."""
        return any(is_inbound(fact) and fact.trace_id != self.trace_id for fact in facts)

    def entries(self, facts: list[Fact]) -> dict[bytes, bytes | None]:
        """Entries of consecutive facts for the request index; none before the first inbound request."""
        if not self.serves and any(map(is_inbound, facts)):
            self.serves = True
            if self.lasts[-1] > facts[-1].seq:
                return {**index_entries(facts), UNKNOWN: None}
        return index_entries(facts) if self.serves else {}


COLUMNS = (
    "id, resource, trace_id, span_id, agent, started_ns, seen_ns, heartbeat_ns, exited, failed, last_seq"
)


def recall(row: Any) -> Instance:
    """The state from a row that was read as `COLUMNS`."""
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


def column_values(known: Instance) -> tuple[Any, ...]:
    """Values for `COLUMNS` after the resource."""
    return (
        known.trace_id,
        known.span_id,
        known.agent,
        known.started_ns,
        known.seen_ns,
        known.heartbeat_ns,
        known.exited,
        known.failed,
        known.last_seq,
    )


def text_of(fact: Fact, name: str) -> str:
    """A text attribute, at most `LONGEST_WORD` characters of it; empty if it is missing or not text."""
    value = fact.attributes.get(name)
    return value[:LONGEST_WORD] if isinstance(value, str) else ""


def agent_of(fact: Fact) -> str:
    """The agent whose run a process fact belongs to: for a child process its parent's."""
    return text_of(fact, a.PLAYHEAD_PROCESS_PARENT_AGENT) or text_of(fact, a.PLAYHEAD_RUN_AGENT)


def number_of(fact: Fact, name: str, default: int) -> int:
    """An integer attribute; ``default`` if it is missing or not an integer."""
    value = fact.attributes.get(name)
    return value if type(value) is int else default
