"""What a running run is doing now, and since when: from its last facts and its pending spans.

A run that waits for a person is told apart from one that waits for a model, a stream or a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec
from typing_extensions import TypedDict

from playhead_core.errors import PlayheadError
from playhead_core.facts import ExchangeId, Fact
from playhead_genai.providers import wire_of
from playhead_genai.providers.xai.grpc import request_line
from playhead_genai.steps import FRAMES
from playhead_receiver.storage import RunSummary, Store, StoredTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.values import GenAiOperationName as Operation

What: TypeAlias = Literal["model", "stream", "tool", "request", "person", "code"]

TAILS: Final = 300, 2400, 20_000
"""Facts at the end of a tape that are read: more where fewer than `ENOUGH` are progress, because a call
may take days of heartbeats. Calls that began before them are known from their spans."""
ENOUGH: Final = 30
LONGEST: Final = 200
"""Characters of a name."""
_INPUT: Final = ("stdin",)
"""Kinds of exchanges that wait for a person."""
_TOOLS: Final = ("tool", "mcp", "process")
_IDLE: Final = frozenset((e.PLAYHEAD_PROCESS_HEARTBEAT, e.PLAYHEAD_GAP))
"""Facts that are no progress."""


class Now(TypedDict):
    """What a running run does."""

    what: What
    """``model``: no answer yet; ``stream``: its answer arrives; ``code``: nothing is pending."""
    name: str
    """Of the model, the tool or the request; why a person is waited for."""
    since_ns: int
    progress_ns: int
    """The last sign of progress: of a stream its last chunk."""


class Activity(msgspec.Struct, frozen=True):
    """What a run does."""

    what: What
    """``model``: no answer yet; ``stream``: its answer arrives; ``code``: nothing is pending."""
    name: str
    """Of the model, the tool, or the request; why it waits for a person."""
    since_ns: int
    progress_ns: int
    """The last sign of progress: of a stream the last chunk."""
    key: str
    """The same as long as there is no progress."""

    def to_json(self) -> Now:
        """Return it as an object of plain values."""
        return {
            "what": self.what,
            "name": self.name,
            "since_ns": self.since_ns,
            "progress_ns": self.progress_ns,
        }


class _Open:
    """An exchange without an end."""

    def __init__(self, began: Fact) -> None:
        self.began = began
        self.progress = began
        self.paused = False
        self.has_head = False

    def take(self, fact: Fact) -> None:
        """Note a fact of the exchange."""
        self.progress = fact
        if fact.name == e.PLAYHEAD_CONTROL_HALT:
            self.paused = True
        elif fact.name == e.PLAYHEAD_CONTROL_RELEASE:
            self.paused = False
        elif fact.name in (e.PLAYHEAD_EXCHANGE_RESPONSE, e.PLAYHEAD_EXCHANGE_DATA):
            self.has_head = True


def activity_of(store: Store, run: RunSummary) -> Activity | None:
    """What a run does now; None if it is over, or if nothing tells: only its spans were sent."""
    if run.status != "running":
        return None
    trace_id = bytes.fromhex(run.trace_id)
    found: list[Activity] = []
    try:
        starts = list(store.pending(trace_id))
        for instance in run.instances:
            tape = store.tape(bytes.fromhex(instance))
            pending = _Pending([one for one in starts if one.instance == tape.instance])
            found += _of_tape(tape, trace_id, pending)
        now = most_telling(found)
        if now is None or now.what not in ("code", "request") or not run.last_step:
            return now
        return _with_tool(store, trace_id, bytes.fromhex(run.last_step), now)
    except (PlayheadError, LookupError, ValueError):  # damaged; `verify` reports it
        return None


def most_telling(found: list[Activity]) -> Activity | None:
    """Return what tells most: a call says more than code.

    A person is waited for if nothing else is pending but the tools that ask: what began before it.
    """
    pending = [one for one in found if one.what != "code"] or found
    person = max((one for one in pending if one.what == "person"), key=_progress, default=None)
    others = [
        one
        for one in pending
        if one.what != "person"
        and not (person and one.what == "tool" and one.since_ns <= person.since_ns)
    ]
    return max(others, key=_progress, default=person)


def _progress(one: Activity) -> int:
    return one.progress_ns


def _with_tool(store: Store, trace_id: bytes, last_step: bytes, now: Activity) -> Activity:
    """Return the tool that the last answer called: most tools are functions that leave no span.

    What it requests itself is no step of its own to a reader.
    """
    (last,) = store.ancestry(trace_id, [last_step])[:1] or [None]
    if last is None or last.end_ns is None or not last.label.called:
        return now
    return msgspec.structs.replace(
        now, what="tool", name=last.label.called[-1], since_ns=min(last.end_ns, now.since_ns)
    )


class _Pending:
    """Names of the calls of a process whose spans have not arrived."""

    def __init__(self, starts: list[Fact]) -> None:
        self.model: Fact | None = None
        self.tool: Fact | None = None
        self.waits: list[Fact] = []
        """Marked steps in which the program waits, as for an approval."""
        for one in starts:
            if one.attributes.get(a.PLAYHEAD_STEP_TYPE) == "wait":
                self.waits.append(one)
            operation = one.attributes.get(a.GEN_AI_OPERATION_NAME)
            if operation == Operation.EXECUTE_TOOL:
                self.tool = one
            elif operation and operation not in FRAMES:
                self.model = one

    @property
    def tool_name(self) -> str:
        return "" if self.tool is None else _text(self.tool, a.GEN_AI_TOOL_NAME)

    @property
    def model_name(self) -> str:
        return "" if self.model is None else _text(self.model, a.GEN_AI_REQUEST_MODEL)


def _of_tape(tape: StoredTape, trace_id: bytes, pending: _Pending) -> Iterator[Activity]:
    """Yield what is pending in a process; without anything, that it executes code."""
    exchanges: dict[ExchangeId, _Open] = {}
    waits: dict[bytes, Fact] = {}
    """What says that the program waits for a person, by its span: also inside of a marked tool."""
    ended: set[ExchangeId] = set()
    last: Fact | None = None
    for fact in _tail(tape):
        if fact.trace_id not in (trace_id, b""):
            continue
        last = fact
        if fact.name in (e.PLAYHEAD_INPUT, e.PLAYHEAD_PHASE):
            waits.pop(fact.span_id, None)
            if _is_wait(fact):
                waits[fact.span_id] = fact
        if fact.exchange is None or fact.exchange in ended:
            continue
        if fact.name == e.PLAYHEAD_EXCHANGE_END:
            exchanges.pop(fact.exchange, None)
            ended.add(fact.exchange)
        elif fact.exchange not in exchanges:
            exchanges[fact.exchange] = _Open(fact)
        if fact.exchange in exchanges:
            exchanges[fact.exchange].take(fact)
    for id, one in exchanges.items():
        if (found := _of_exchange(tape, id, one, pending)) is not None:
            yield found
    for fact in (*waits.values(), *pending.waits):
        names = (a.PLAYHEAD_STEP_NAME, a.PLAYHEAD_PHASE_REASON, a.PLAYHEAD_PHASE_NAME)
        name = next(filter(None, (_text(fact, one) for one in names)), "input")
        yield Activity("person", name, fact.time_ns, fact.time_ns, f"{fact.name}/{fact.seq}")
    if last is None:
        return
    of_spans: list[tuple[Fact | None, What, str]] = [
        (pending.model, "model", pending.model_name),
        (pending.tool, "tool", pending.tool_name),
    ]
    for start, what, name in of_spans:
        if start is not None and not exchanges:
            yield Activity(
                what, name, start.time_ns, max(start.time_ns, last.time_ns), f"{what}/{last.seq}"
            )
    yield Activity("code", "", last.time_ns, last.time_ns, f"code/{last.seq}")


def _tail(tape: StoredTape) -> list[Fact]:
    """Return facts at the end of a tape that are progress."""
    found, last = list[Fact](), tape.last()
    for count in TAILS:
        found = [fact for fact in tape.facts(max(last - count, -1)) if fact.name not in _IDLE]
        if len(found) >= ENOUGH or count > last:
            break
    return found


def _is_wait(fact: Fact) -> bool:
    """Whether a tool asks for an input, or the program says that it waits."""
    at = fact.attributes
    return at.get(a.PLAYHEAD_INPUT_PENDING) is True or at.get(a.PLAYHEAD_PHASE_NAME) == "waiting"


def _of_exchange(tape: StoredTape, id: ExchangeId, one: _Open, pending: _Pending) -> Activity | None:
    exchange = tape.exchange(id)
    if exchange is None or exchange.ask.direction == "in" or exchange.end is not None:
        return None
    since, progress = one.began.time_ns, one.progress.time_ns
    key = f"{id}/{one.progress.seq}"
    if one.paused:
        reason = _text(one.progress, a.PLAYHEAD_CONTROL_REASON)
        return Activity("person", f"paused: {reason}" if reason else "paused", progress, progress, key)
    if id.kind in _INPUT:
        return Activity("person", "input", progress, progress, key)
    if id.kind in _TOOLS:
        return Activity("tool", exchange.ask.key.removeprefix("tools/call "), since, progress, key)
    if wire_of(*request_line(exchange.ask.key)) is not None:
        what: What = "stream" if one.has_head else "model"
        return Activity(what, pending.model_name, since, progress, key)
    if pending.tool is not None:
        return Activity("tool", pending.tool_name, pending.tool.time_ns, progress, key)
    return Activity("request", exchange.ask.key[:LONGEST], since, progress, key)


def _text(fact: Fact, name: str) -> str:
    return str(fact.attributes.get(name, ""))[:LONGEST]
