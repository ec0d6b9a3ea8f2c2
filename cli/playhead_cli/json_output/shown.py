"""One run, one step, and integrity."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from playhead_receiver.queries.run_items import Missing, RunStatus
from playhead_replay.json_objects.findings import (
    DecisionItem,
    FailureItem,
    LoopItem,
    ReportItem,
    ScoreItem,
    SessionItem,
    SignalItem,
    ToolCallItem,
    TransitionItem,
)
from playhead_replay.json_objects.recorded import ExchangeItem, SpanEventItem

ChainState: TypeAlias = Literal["whole", "changed", "not chained"]


class PrintedSpan(TypedDict):
    """A span with all its descendants."""

    span_id: str
    parent_id: str | None
    name: str
    kind: int
    """As OpenTelemetry numbers them: 1 internal, 2 server, 3 client, 4 producer, 5 consumer."""
    started_ns: int
    ended_ns: int | None
    status: Literal["unset", "ok", "error"]
    status_message: str | None
    attributes: dict[str, Any]
    events: list[SpanEventItem]
    children: list[PrintedSpan]


class PrintedStep(TypedDict):
    """A step in the list of a run."""

    number: int
    span_id: str
    name: str
    started_ns: int
    ended_ns: int | None
    error: str | None
    """Why it failed; null: it did not."""
    attempts: int
    """Requests that it sent."""
    retries: int
    """Attempts after the first."""


class PrintedCommand(TypedDict):
    """How the program was started."""

    argv: list[str]
    cwd: str
    interpreter: str
    hash_seed: str
    script_digest: str | None
    level: str


class PrintedRaised(TypedDict):
    """The exception that ended a program."""

    type: str
    message: str


class PrintedExit(TypedDict):
    """How the first process ended."""

    code: int | None
    error: PrintedRaised | None
    stderr: list[str]
    """Its last lines, if the code is not 0."""


class PrintedMissingOfRun(Missing):
    """Facts of a process that were written and are not there, and why."""

    reason: str | None


class PrintedOneToolCall(ToolCallItem):
    """``playhead show RUN:STEP.CALL``: a tool call that only the messages report."""

    schema_version: Literal[1]
    run: str
    trace_id: str


class PrintedWholeRun(TypedDict):
    """``playhead show RUN``: a run with its tree of spans and its steps."""

    schema_version: Literal[1]
    name: str
    trace_id: str
    agent: str
    status: RunStatus
    status_reason: str | None
    """Why a run with status success is not a plain one: ``cut off: length``, ``content filter``."""
    unrecorded: dict[str, list[str]]
    """Hosts whose traffic was not recorded, by library. Empty name: the program's own modules."""
    mode: str
    origin: str | None
    """The run that it was forked or resumed from, and the step: `TRACE_ID:STEP`."""
    started_ns: int
    ended_ns: int | None
    command: PrintedCommand | None
    """Null if no tape contains it."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced: list[str]
    """Models that used tokens and have no known price: the cost is without them."""
    exit: PrintedExit | None
    """Null: it has not ended by itself."""
    steps: list[PrintedStep]
    tool_calls: list[ToolCallItem]
    failures: list[FailureItem]
    reports: list[ReportItem]
    """What the program reported about itself, by time."""
    decisions: list[DecisionItem]
    """Reported or derived, by time."""
    session: SessionItem
    transitions: list[TransitionItem]
    """Between the states that it passes."""
    loops: list[LoopItem]
    signals: list[SignalItem]
    scores: list[ScoreItem]
    """Results of evaluations, by time."""
    spans: list[PrintedSpan]
    missing: list[PrintedMissingOfRun]


class PrintedState(TypedDict):
    """A state that the program reported in a step."""

    name: str
    value: Any
    """Null if its content was not recorded."""


class PrintedLogRecord(TypedDict):
    """A log record of a program or an instrumentation."""

    time_ns: int
    span_id: str | None
    level: int
    """Severity number of OTLP, 0 if unknown."""
    level_name: str | None
    event: str | None
    """Name of the event; null for an ordinary log line."""
    logger: str | None
    service: str | None
    body: Any
    attributes: dict[str, Any]


class PrintedLog(PrintedLogRecord):
    """``playhead logs``: a log record of a run, one object per line."""

    schema_version: Literal[1]
    run: str
    step: int | None


class PrintedWholeStep(PrintedStep):
    """``playhead show RUN:POINT``: a step with messages, states, attempts, log records and scores."""

    schema_version: Literal[1]
    run: str
    trace_id: str
    attributes: dict[str, Any]
    system_instructions: list[dict[str, Any]]
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]
    tool_definitions: list[dict[str, Any]]
    states: list[PrintedState]
    logs: list[PrintedLogRecord]
    reports: list[ReportItem]
    decisions: list[DecisionItem]
    scores: list[ScoreItem]
    exchanges: list[ExchangeItem]


class PrintedDone(TypedDict):
    """A later change to stored facts of a process."""

    what: str
    """before, redacted, emptied or aged."""
    facts: list[tuple[int, int]]
    """Their numbers: first and last of each stretch."""
    time_ns: int
    by: str | None


class PrintedChain(TypedDict):
    """The hash chain of a process."""

    instance: str
    chain_of: str | None
    """The process with the hash chain."""
    state: ChainState
    facts: int
    links: int
    head: str | None
    """The last link."""
    part: bool
    not_chained: int
    """Facts without a link."""
    rewritten: int
    """Facts rewritten for the file."""
    done: list[PrintedDone]


class PrintedChainFinding(TypedDict):
    """A defect of a process or of a signature."""

    what: Literal["chain", "signature"]
    instance: NotRequired[str]
    first: NotRequired[int | None]
    last: NotRequired[int | None]
    problem: str


class PrintedChainWithFindings(PrintedChain):
    """The hash chain of a process, and its defects."""

    findings: list[PrintedChainFinding]


class PrintedSignature(TypedDict):
    """The signature of a tape file; ``good`` null: it was not checked."""

    key: str
    """Fingerprint of the public key."""
    good: bool | None
    key_was_given: bool


class PrintedDeletedRun(TypedDict):
    """A deleted run."""

    trace_id: str
    name: str


class PrintedEndOfChain(TypedDict):
    """The end of the hash chain of a deleted process."""

    instance: str
    links: int
    head: str


class PrintedTombstone(TypedDict):
    """A deletion: what, when and by whom."""

    why: str
    time_ns: int
    by: str | None
    runs: list[PrintedDeletedRun]
    facts: int
    spans: int
    chains: list[PrintedEndOfChain]
    tenant: NotRequired[str]
    """Empty for the store of the data folder itself."""


class PrintedCustody(TypedDict):
    """``playhead show RUN --custody``: the integrity of a run."""

    schema_version: Literal[1]
    run: str
    trace_id: str | None
    processes: list[PrintedChainWithFindings]
    signature: PrintedSignature | None
    tombstones: list[PrintedTombstone]


class PrintedFileCustody(TypedDict):
    """``playhead verify FILE``: the integrity of a tape file."""

    schema_version: Literal[1]
    file: str
    trace_id: str | None
    findings: list[PrintedChainFinding]
    processes: list[PrintedChain]
    signature: PrintedSignature | None


class PrintedStoreFinding(TypedDict):
    """A defect of a store."""

    what: str
    where: str
    problem: str
    runs: list[str]
    """Names of the runs that it concerns."""
    tenant: str
    """Empty for the store of the data folder itself."""


class PrintedVerification(TypedDict):
    """``playhead verify``: the integrity of the store."""

    schema_version: Literal[1]
    findings: list[PrintedStoreFinding]
    not_chained: int
    tombstones: list[PrintedTombstone]
