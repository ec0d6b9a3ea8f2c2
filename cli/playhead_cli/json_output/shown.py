"""One run, one step, the comparison of two runs, and integrity."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from playhead_cli.json_output.runs import PrintedMissing, RunStatus

ChainState: TypeAlias = Literal["whole", "changed", "not chained"]


class PrintedEvent(TypedDict):
    """An event of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


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
    events: list[PrintedEvent]
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


class PrintedMissingOfRun(PrintedMissing):
    """Facts of a process that were written and are not there, and why."""

    reason: str | None


class PrintedToolCall(TypedDict):
    """A tool call of a model, from its messages."""

    number: str
    """Step whose answer has the call, and its place in it: `3.1`."""
    name: str
    id: str | None
    """Id in the messages; null: the provider gives none."""
    asked_by: int
    """The step whose answer has the call."""
    arguments: Any
    result: Any
    """Null: no later request has its result."""
    error: str | None
    """Why it failed, as its result says; null: it does not."""
    attempt: int
    """From 1: number of times that the same call was made because the one before failed."""
    started_ns: int
    ended_ns: int | None
    derived: bool
    """Whether only the messages report the call; its times are then those of answer and next request."""
    span_id: str | None
    """The span that reports the same call; null: none does."""


class PrintedOneToolCall(PrintedToolCall):
    """``playhead show RUN:STEP.CALL``: a tool call that only the messages report."""

    schema_version: Literal[1]
    run: str
    trace_id: str


class PrintedLoop(TypedDict):
    """Calls that repeat in equal rounds."""

    period: int
    """Calls of a round."""
    times: int
    """Rounds."""
    names: list[str]
    """What the calls of a round are: names of tools, models or requests."""
    first: str
    """Number of the first step, or of a tool call that only the messages report: ``3.1``."""
    last: str
    started_ns: int
    ended_ns: int
    same_result: bool
    """Whether the rounds had the same results; if not, it does not count as a loop."""
    derived: bool


class PrintedDerivedSignal(TypedDict):
    """A fact about a step, derived in neutral words."""

    type: str
    """``tool_success``, ``retry_occurred``, ``schema_valid``, ``instruction_from_data``, …"""
    code: str
    """``first_attempt``, ``after_retry``, ``validation_failed``, …"""
    value: bool
    step: int
    place: str
    """Number of the step, or of a tool call that only the messages report: ``3.1``."""
    name: str
    evidence: str
    derived: bool
    version: int


class PrintedStepFailure(TypedDict):
    """A failure in a run, derived from its steps."""

    type: Literal["tool", "model", "retrieval", "orchestration"]
    code: str
    """``rate_limit``, ``no_results``, ``cut_off``, …"""
    step: int | None
    """Null: it belongs to no step."""
    place: str | None
    """Number of the step, or of a tool call that only the messages report: ``3.1``."""
    name: str
    """Operation of the model, or name of the tool or exception."""
    source: Literal["status", "exception", "finish_reason", "result", "arguments", "output", "check"]
    evidence: str
    recovered: bool
    """A later attempt, or a later step of the same kind, succeeded."""
    times: int
    """Failed attempts."""
    derived: bool
    version: int
    """Version of the rules that derive failures."""


class PrintedReport(TypedDict):
    """What a program reported about itself: a decision, a signal, a failure, a phase, …"""

    kind: Literal[
        "decision",
        "signal",
        "failure",
        "phase",
        "message",
        "agent",
        "goal",
        "trigger",
        "result",
        "task",
    ]
    fields: dict[str, Any]
    """By name, without those that are not reported: `chosen`, `options`, `confidence`."""
    time_ns: int
    span_id: str | None
    step: int | None
    """The step that it belongs to, else the last one that had begun; null: none had."""


class PrintedRejected(TypedDict):
    """An option that was rejected."""

    option: str
    reason: str | None


class PrintedDecision(TypedDict):
    """A decision: reported by the program, or derived from what a model does with its tools."""

    question: str | None
    type: str | None
    chosen: str
    """Several tools are separated by commas; `(no tool)` if a model calls none."""
    options: list[str]
    rejected: list[PrintedRejected]
    rules: list[str]
    """Names of the rules that were applied."""
    reason: str | None
    method: str | None
    confidence: float | None
    """From 0 to 1: reported, else of the log probabilities of the answer."""
    step: int | None
    time_ns: int
    thought: str | None
    """Reasoning and text of the model before its calls."""
    actions: list[str]
    """Numbers of the tool calls that follow from it: `3.1`."""
    outcome: str | None
    """Result of an action, or why the first one that failed did."""
    failed: bool
    """Whether an action failed."""
    recovered_by: str | None
    """The later call of the same tool that succeeded."""
    derived: bool
    version: int | None
    """Version of the rules that derive decisions; null: it is reported."""


class PrintedTransition(TypedDict):
    """A change of states: a reported phase, a node of a framework, or derived from steps."""

    sequence: int
    previous: str | None
    """The state that is left."""
    state: str | None
    """The state that is entered; null: none, as between two phases."""
    type: str
    """normal, error, retry, skip or jump."""
    reason: str | None
    trigger: str
    time_ns: int
    lasted_ns: int | None
    """Time in the state that is entered; null while the run is in it."""
    step: int | None
    source: Literal["phase", "framework", "steps"]
    derived: bool
    version: int | None


class PrintedTask(TypedDict):
    """A task of the task graph that a program reports."""

    id: str
    name: str | None
    status: str | None
    """The last one that was reported."""
    parent: str | None
    """The task that it is a part of."""
    depends_on: list[str]
    """Ids of the tasks before it."""
    began_ns: int
    """When it was first reported."""
    ended_ns: int | None
    depth: int
    """In the tree of parts; 0: part of no task."""


class PrintedSession(TypedDict):
    """What a run is about and how far it is."""

    agent: str
    agent_type: str | None
    agent_id: str | None
    """What names it among the agents of its type."""
    goal: str | None
    goal_type: str | None
    trigger: str | None
    parent: str | None
    """The run that triggered it."""
    tasks: list[str]
    """Ids of the tasks of its task graph."""
    task_graph: list[PrintedTask]
    """These tasks as a tree: each one followed by its parts."""
    result: str | None
    status: Literal[
        "initializing", "planning", "executing", "waiting", "completed", "failed", "cancelled"
    ]
    status_derived: bool
    """Whether no program reported it as a phase."""


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
    tool_calls: list[PrintedToolCall]
    failures: list[PrintedStepFailure]
    reports: list[PrintedReport]
    """What the program reported about itself, by time."""
    decisions: list[PrintedDecision]
    """Reported or derived, by time."""
    session: PrintedSession
    transitions: list[PrintedTransition]
    """Between the states that it passes."""
    loops: list[PrintedLoop]
    signals: list[PrintedDerivedSignal]
    scores: list[PrintedScore]
    """Results of evaluations, by time."""
    spans: list[PrintedSpan]
    missing: list[PrintedMissingOfRun]


class PrintedBody(TypedDict):
    """Bytes: as text if they are text, else as base64."""

    text: NotRequired[str]
    base64: NotRequired[str]


class PrintedChunk(PrintedBody):
    """A piece of an answer, as it was delivered."""

    time_ns: int


class PrintedExchange(TypedDict):
    """An attempt of a step: request and response, verbatim."""

    name: str
    id: str
    instance: str
    """The process that sent the request."""
    key: str
    """Method and URL for HTTP; the name of a tool."""
    started_ns: int
    request_headers: list[tuple[str, str]]
    request: PrintedBody | None
    """Null if no content was recorded."""
    status_code: int | None
    response_headers: list[tuple[str, str]]
    response: PrintedBody | None
    """Without its content encoding."""
    chunks: list[PrintedChunk]
    """As on the wire."""
    end: str | None
    """Null: it had no answer when the tape ends."""
    error: str | None


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


class PrintedScore(TypedDict):
    """The result of an evaluation of a call or a run."""

    name: str
    """Name of the metric."""
    value: float | None
    label: str | None
    explanation: str | None
    evaluator: str | None
    time_ns: int
    span_id: str | None
    """The evaluated span."""
    step: int | None
    """The evaluated step; null: another span, or the run."""


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
    reports: list[PrintedReport]
    decisions: list[PrintedDecision]
    scores: list[PrintedScore]
    exchanges: list[PrintedExchange]


class PrintedDiffSide(TypedDict):
    """One of two runs that are compared."""

    run: str
    """Its name."""
    status: RunStatus
    steps: int
    errors: int
    """Steps that failed."""
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    """Null while it runs."""
    cost_usd: float | None
    """Null if no price is known."""


class PrintedDifference(TypedDict):
    """A difference between two runs."""

    kind: str
    """`request`, `response`, `error`, `state`, `report`; of a whole step `removed`, `added`, `moved`."""
    left_step: int | None
    """Null: the left run has no such step."""
    right_step: int | None
    """Null: the right run has no such step."""
    label: str
    """The label of the step: `chat`, `execute_tool search`, `GET /orders`."""
    path: str | None
    """The path: `request.messages[3].content`; null if the whole step differs."""
    left: str
    """The value in the left run."""
    right: str
    follows: bool
    """It repeats an earlier one."""


class PrintedPair(TypedDict):
    """Steps that do the same; null: the run has no such step."""

    left: int | None
    right: int | None


class PrintedCounts(TypedDict):
    """How often a tool was called."""

    left: int
    right: int


class PrintedSequences(TypedDict):
    """The tools that were called, in order."""

    left: list[str]
    right: list[str]


class PrintedOutcome(TypedDict):
    """How the ends of two runs differ."""

    path: str
    left: str
    right: str


class PrintedDiff(TypedDict):
    """``playhead diff``: two runs step by step, as ``/v1/diff`` of the query API."""

    schema_version: Literal[1]
    left: PrintedDiffSide
    right: PrintedDiffSide
    identical: bool
    """Neither a step nor the end differs."""
    same_steps: list[int]
    """Numbers of steps of the left run without a difference."""
    first_difference: PrintedDifference | None
    """The first step that differs; null: none."""
    differences: list[PrintedDifference]
    """In order of the steps."""
    steps: list[PrintedPair]
    """Steps paired by their requests."""
    tools: dict[str, PrintedCounts]
    """How often each was called, by name."""
    tool_sequence: PrintedSequences
    outcome: PrintedOutcome | None
    """Null: they end alike."""


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
