"""Requests between the agents of a run, and their answers, in order of time.

An agent begins with a span: ``invoke_agent``, the root of a recorded process, or the first span of
another process in the same trace. The agent around that span called it. The spans between the
two show how: a tool, a request over HTTP, a child process. Two more sources name both agents: the span
of a hand-off, and `playhead.message`.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast

from playhead_analysis.paths import LONGEST_NAME
from playhead_core.errors import TapeError
from playhead_core.reports import ProgramReport
from playhead_core.untrusted.shown_text import in_one_line
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.spans import KIND_CONSUMER, KIND_SERVER, Span
from playhead_replay.run.steps import is_request, is_rpc
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

VERSION: Final = 2
"""Changes with the rules below: communications that were derived with another version may differ."""

Channel: TypeAlias = Literal[
    "call", "tool", "handoff", "mcp", "http", "rpc", "queue", "process", "message", "trigger"
]
"""How an agent calls another one. ``call``: within its program; ``tool``: as a tool; ``process``: as a
child process; ``message``: reported by the program; ``trigger``: as a separate run."""

ASKING: Final = frozenset(("task_delegation", "question", "collaboration_request", "resource_request"))
"""Kinds of messages that ask for an answer."""
ANSWERING: Final = frozenset(("result", "error_notification"))
"""Kinds of messages that answer an earlier one in the other direction, if there is one."""
PROGRAM: Final = "program"
"""Name of a program that reports none."""
WORKER: Final = "--multiprocessing-fork"
"""An argument of each worker of `multiprocessing`, which belongs to the program that starts it."""


@dataclass(frozen=True, slots=True)
class Communication:
    """A request of an agent to another one, and its answer."""

    source: str
    """The agent that asks: its name, or that of its program or service."""
    target: str
    channel: str
    """A `Channel`; for messages, the one that the program names, if it names one."""
    kind: str
    """Kind of a message (``question``), method of MCP; empty for others."""
    started_ns: int
    answered_ns: int | None
    """None: there is no answer."""
    own_ns: int
    """Time until the answer in which the target did not wait for other agents."""
    expects_answer: bool
    failed: bool
    failure: str
    """The error in one line; empty if there was none."""
    step: int | None
    """The first step of the target, or the step at which a message was sent."""


@dataclass(slots=True, eq=False)
class _Request:
    """A communication that is being found."""

    source: str
    target: str
    channel: Channel
    span: Span
    """What began; the other side of the request is `waits`."""
    waits: Span
    above: _Request | None
    """The request that its source was serving."""
    kind: str = ""
    step: int | None = None
    below: list[_Request] = field(default_factory=list["_Request"])


@dataclass(frozen=True, slots=True)
class _Place:
    """The agent, process and request that a span belongs to."""

    agent: str
    process: str
    request: _Request | None
    """The request that the agent serves."""
    is_worker: bool = False
    """Whether a worker process of the agent is around it."""
    is_tool: bool = False
    """Whether a tool of the agent is around it."""
    client: Span | None = None
    """The span of a request of the agent that is around it."""
    mcp: Span | None = None
    """The span of a request to an MCP server that is around it."""


@once_per_run
def communications_of(run: Run) -> list[Communication]:
    """Return the requests between the agents of a run, in order of time."""
    finder = _Finder(run)
    finder.walk()
    finder.hand_over()
    finder.add_servers()
    found = [_communication(request) for request in finder.requests]
    sent = (one for one in run.reports if one.kind == "message")
    found += _messages(sent, finder.agents, finder.program)
    return sorted(found, key=lambda one: (one.started_ns, one.source, one.target, one.channel))


def communications_of_runs(runs: Iterable[Run]) -> dict[str, list[Communication]]:
    """Return the communications of some runs by name, and which of these runs triggered others.

    A run is released before the next one is taken.
    """
    found: dict[str, list[Communication]] = {}
    agents: dict[str, str] = {}
    triggered: list[tuple[str, str, Communication]] = []
    for run in runs:
        agent = _name(run.agent) or PROGRAM
        found[run.name], agents[run.trace_id] = [*communications_of(run)], agent
        ended = None if run.status == "running" else run.ended_ns
        own = 0 if ended is None else max(ended - run.started_ns, 0)
        whole = Communication(
            *("", agent, "trigger", "", run.started_ns, ended, own),
            *(
                True,
                run.status in ("failure", "interrupted"),
                "",
                run.steps[0].number if run.steps else None,
            ),
        )
        for report in run.reports:
            if report.kind == "trigger" and report.text("type") == "another_agent":
                triggered.append((run.name, report.text("run"), whole))
    for name, by, whole in triggered:
        if by in agents:
            asked = (
                (one.started_ns, one.answered_ns or one.started_ns)
                for one in found[name]
                if one.source == whole.target
            )
            waited = covered_ns(asked, whole.started_ns)
            own = max(whole.own_ns - waited, 0)
            found[name].insert(0, replace(whole, source=agents[by], own_ns=own))
    return found


class _Finder:
    def __init__(self, run: Run) -> None:
        self.requests: list[_Request] = []
        self.agents: dict[str, str] = {}
        """The agent that a span belongs to, by span id."""
        self._run = run
        self._steps = {step.span.span_id: step.number for step in run.steps}
        self._processes = _names_of_processes(run)
        self.program = _name(run.agent) or PROGRAM
        self._handoffs: list[tuple[Span, _Place]] = []
        self._to_servers: dict[str, tuple[Span, _Place]] = {}
        """Requests to MCP servers by span id."""
        self._mcp_spans: dict[str, str] = {}
        """Ids of the spans of requests to MCP servers, each with that of the outermost one around it."""
        self._answered: dict[tuple[str, str], _Request] = {}
        """Requests to recorded MCP servers by span id and server: HTTP and MCP both report one."""
        self._hosts: dict[str, str] = {}

    def walk(self) -> None:
        """Find the agents that spans begin, depth first."""
        waiting: deque[tuple[Span, _Place | None]] = deque((root, None) for root in self._run.roots)
        while waiting:
            span, around = waiting.popleft()
            place = self._place(span, around)
            self.agents[span.span_id] = place.agent
            self._number(place.request, self._steps.get(span.span_id))
            waiting.extendleft((child, place) for child in reversed(span.children))

    def _place(self, span: Span, around: _Place | None) -> _Place:
        """Return what the children of a span have around them."""
        process = _process_of(span) or (around.process if around else "")
        name = self._beginning(span, process, around)
        if around is None:
            program = name or self._processes.get(process, "") or self.program
            return self._inside(span, _Place(program, process, None))
        if name:
            return self._inside(span, self._begun(span, name, process, around))
        is_worker = around.is_worker or process != around.process
        return self._inside(span, replace(around, process=process, is_worker=is_worker))

    def _beginning(self, span: Span, process: str, around: _Place | None) -> str:
        """Return the name of the agent that begins with a span; empty if none does."""
        at = span.attributes
        if span.operation == Operation.INVOKE_AGENT:
            said = str(at.get(a.GEN_AI_AGENT_NAME) or span.name.removeprefix(f"{span.operation} "))
            # A program and a framework may each have a span for one call.
            is_new = around is None or around.is_tool or around.process != process
            name = _name(said)
            return name if is_new or around is None or name != around.agent else ""
        if around is not None and around.process == process:
            return ""
        if a.PLAYHEAD_RUN_AGENT in at:
            program = _name(at[a.PLAYHEAD_RUN_AGENT])
            parent = "" if around is None else self._processes.get(around.process, "")
            return "" if around is not None and _is_worker(at, program == parent) else program
        if around is None:
            return ""
        program = self._processes.get(process, "")
        # A forked process has no root span; a service may call itself.
        is_fork = span.kind not in (KIND_SERVER, KIND_CONSUMER)
        return "" if is_fork and program == self._processes.get(around.process) else program

    def _begun(self, span: Span, name: str, process: str, around: _Place) -> _Place:
        """Return the place inside a new agent, and note the request that began it."""
        channel: Channel
        if around.process == process and not around.is_worker:
            channel, waits = "tool" if around.is_tool else "call", span
        else:
            channel, waits = _crossing(span, around), span
        kind = ""
        if channel in ("http", "rpc"):
            waits = around.client or span
        elif channel == "mcp":
            waits = around.mcp or span
            kind = str((around.mcp or span).attributes.get(a.MCP_METHOD_NAME, ""))
            if (request := self._answered.get((waits.span_id, name))) is not None:
                return _Place(name, process, request)
        request = _Request(around.agent, name, channel, span, waits, around.request, _name(kind))
        if channel == "mcp":
            self._answered[waits.span_id, name] = request
        self._add(request)
        return _Place(name, process, request)

    def _inside(self, span: Span, place: _Place) -> _Place:
        """Return the place of a span with what the span itself is."""
        at = span.attributes
        if at.get(a.PLAYHEAD_FRAMEWORK_HANDOFF_TO):
            self._handoffs.append((span, place))
        if a.MCP_METHOD_NAME in at and span.kind != KIND_SERVER:
            # MCP's SDK adds a span inside that of the call.
            place = replace(place, mcp=place.mcp or span)
            self._mcp_spans[span.span_id] = (place.mcp or span).span_id
            self._to_servers.setdefault(self._mcp_spans[span.span_id], (span, place))
        if span.operation == Operation.EXECUTE_TOOL:
            place = replace(place, is_tool=True)
        if is_request(span):
            place = replace(place, client=span)
            if place.mcp is not None and span.url.hostname:
                self._hosts.setdefault(place.mcp.span_id, span.url.hostname)
        return place

    def _number(self, request: _Request | None, step: int | None) -> None:
        """Set the first step of each open request."""
        while step is not None and request is not None and request.step is None:
            request.step = step
            request = request.above

    def _add(self, request: _Request) -> None:
        self.requests.append(request)
        if request.above is not None:
            request.above.below.append(request)

    def hand_over(self) -> None:
        """Give each hand-off the next beginning of its target, which its caller did not ask for then."""
        beginnings: dict[str, deque[_Request]] = defaultdict(deque)
        for request in sorted(self.requests, key=lambda one: one.span.started_ns):
            if request.channel in ("call", "tool"):
                beginnings[request.target].append(request)
        for span, place in sorted(self._handoffs, key=lambda one: one[0].started_ns):
            at = span.attributes
            source = _name(at.get(a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM) or place.agent)
            target = _name(at[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO])
            later = beginnings[target]
            while later and later[0].span.started_ns < span.started_ns:
                later.popleft()
            if later:
                taken = later.popleft()
                taken.source, taken.channel = source, "handoff"
            else:
                self._add(_Request(source, target, "handoff", span, span, place.request))

    def add_servers(self) -> None:
        """Add the requests to MCP servers that were not recorded, if their names are known."""
        if not self._to_servers:
            return
        answered = {id for id, _ in self._answered}
        labels = dict(_labels_of_servers(self._run, self._mcp_spans))
        for id, (span, place) in self._to_servers.items():
            if id not in answered and (server := labels.get(id) or self._hosts.get(id)):
                kind = _name(span.attributes[a.MCP_METHOD_NAME])
                target = _name(server)
                request = _Request(place.agent, target, "mcp", span, span, place.request, kind)
                request.step = self._steps.get(id)
                self._add(request)


def _crossing(span: Span, around: _Place) -> Channel:
    """Return the channel between two processes."""
    if around.mcp is not None or a.MCP_METHOD_NAME in span.attributes:
        return "mcp"
    if span.kind == KIND_SERVER:
        return "rpc" if is_rpc(span) else "http"
    return "queue" if span.kind == KIND_CONSUMER else "process"


def _communication(request: _Request) -> Communication:
    span, waits = request.span, request.waits
    ended = waits.ended_ns
    own = 0
    if ended is not None:
        own = max(ended - waits.started_ns, 0) - covered_ns(
            (
                (one.waits.started_ns, ended if one.waits.ended_ns is None else one.waits.ended_ns)
                for one in request.below
            ),
            waits.started_ns,
            ended,
        )
    failed = next((one for one in (waits, span) if one.failed), None)
    return Communication(
        request.source,
        request.target,
        request.channel,
        request.kind,
        waits.started_ns,
        ended,
        own,
        True,
        failed is not None,
        "" if failed is None else _name(failed.error),
        request.step,
    )


def covered_ns(ranges: Iterable[tuple[int, int]], first_ns: int = 0, last_ns: int = 1 << 63) -> int:
    """Return how long at least one of some ranges of time lasted between two times.

    >>> covered_ns([(0, 10), (5, 20), (30, 40)], 2, 35)
    23
    """
    covered, until = 0, first_ns
    for start, end in sorted(ranges):
        start, end = max(start, until), min(end, last_ns)
        if end > start:
            covered += end - start
            until = end
    return covered


def _messages(
    reports: Iterable[ProgramReport], agents: Mapping[str, str], program: str
) -> Iterator[Communication]:
    """Yield the messages that programs reported; an answer belongs to the oldest open question."""
    open_ones: dict[tuple[str, str], deque[Communication]] = defaultdict(deque)
    for report in sorted(reports, key=lambda one: one.time_ns):
        source = agents.get(report.span_id) or program
        target, kind = _name(report.text("to")), _name(report.text("kind"))
        waiting = open_ones.get((target, source))
        if waiting and kind in ANSWERING:
            asked = waiting.popleft()
            failed = kind == "error_notification"
            why = _name(report.text("content")) if failed else ""
            took = max(report.time_ns - asked.started_ns, 0)
            answered_ns = asked.started_ns + took
            yield replace(asked, answered_ns=answered_ns, own_ns=took, failed=failed, failure=why)
            continue
        asks = kind in ASKING
        failed = kind == "error_notification"
        channel = _name(report.text("channel")) or "message"
        sent = Communication(
            source, target, channel, kind, report.time_ns, None, 0, asks, failed, "", report.step
        )
        if asks:
            open_ones[source, target].append(sent)
        else:
            yield sent
    for waiting in open_ones.values():
        yield from waiting


def _names_of_processes(run: Run) -> dict[str, str]:
    """Return the name of the program of each process: what it says, else its ``service.name``."""
    said: dict[str, str] = {}
    services: dict[str, str] = {}
    for root in run.roots:
        for span in root.walk():
            process = _process_of(span)
            if agent := span.attributes.get(a.PLAYHEAD_RUN_AGENT):
                said.setdefault(process, _name(agent))
            elif service := span.resource.get(a.SERVICE_NAME):
                services.setdefault(process, _name(service))
    return services | said


def _process_of(span: Span) -> str:
    """Return what the spans of a process share; empty for a span whose end has not arrived."""
    at = span.resource
    return span.instance or str(at.get(a.SERVICE_INSTANCE_ID) or at.get(a.SERVICE_NAME) or "")


def _is_worker(at: Mapping[str, Any], is_same_program: bool) -> bool:
    """Whether a process is a fork of a program or a worker of its pool, not a program itself."""
    is_fork = is_same_program and a.PLAYHEAD_PROCESS_PARENT_EXCHANGE not in at
    words = at.get(a.PLAYHEAD_RUN_ARGV)
    return (is_fork and a.PLAYHEAD_PROCESS_PARENT_INSTANCE in at) or (
        isinstance(words, list) and WORKER in words
    )


def _labels_of_servers(run: Run, spans: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the command of the MCP server that each of some spans asked, by the id in ``spans``."""
    for exchange in run.exchanges:
        if exchange.id.kind == "mcp" and exchange.span_id in spans:
            try:
                said: Any = json.loads(exchange.request)
            except (TapeError, ValueError, RecursionError):
                continue
            server: Any = cast("dict[str, Any]", said).get("server") if isinstance(said, dict) else None
            if isinstance(server, str):
                yield spans[exchange.span_id], server


def _name(text: object) -> str:
    """Return a name that a sender chose, made harmless: short and in one line."""
    return in_one_line(str(text)[:LONGEST_NAME])
