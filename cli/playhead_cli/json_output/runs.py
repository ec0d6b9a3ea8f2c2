"""Lists of runs, statistics, search hits, recordings, forks and replays."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

RunStatus: TypeAlias = Literal["running", "success", "failure", "partial", "interrupted"]


class PrintedMissing(TypedDict):
    """Facts of a process that were written and did not come."""

    instance: str
    first: int
    last: int


class PrintedNow(TypedDict):
    """What a running run does."""

    what: Literal["model", "stream", "tool", "request", "person", "code"]
    """``model``: no answer yet; ``stream``: its answer arrives; ``code``: nothing is pending."""
    name: str
    """Of the model, the tool or the request; why a person is waited for."""
    since_ns: int
    progress_ns: int
    """The last sign of progress: of a stream its last chunk."""


class PrintedRun(TypedDict):
    """A run in a list, with the fields of the query API."""

    name: str
    trace_id: str
    root_span_id: str
    agent: str
    agent_types: list[str]
    """What programs or attributes say that its agents are: researcher, coder, …"""
    version: str
    environment: str
    conversation: str
    conversations: list[str]
    users: list[str]
    tags: list[str]
    prompts: list[str]
    prompt_versions: list[str]
    releases: list[str]
    """Versions of its services."""
    input: str
    """User message of the first call, else the first request; like ``result`` cut to 500 characters."""
    result: str
    """Last response of a model, tool or service. Like ``input``, empty if it is not recorded."""
    status: RunStatus
    mode: str
    origin: str
    """The run that it was forked or resumed from, and the step; else empty."""
    started_ns: int
    ended_ns: int | None
    last_ns: int
    """Its last sign of life."""
    steps: int
    """How many; so are spans and errors."""
    spans: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Part of the input; so are those written to a cache."""
    cache_write_tokens: int
    reasoning_tokens: int
    """Part of the output."""
    cost_usd: float | None
    """Null if no price is known."""
    unpriced: list[str]
    """Models that used tokens and have no known price: the cost is without them."""
    models: list[str]
    providers: list[str]
    tools: list[str]
    error_types: list[str]
    failure_codes: list[str]
    """Failures that the receiver derived: ``tool/timeout``. The run did not recover from them."""
    recovered_codes: list[str]
    """Failures that the run recovered from."""
    loop_names: list[str]
    """Calls that repeat with equal results: ``search ×20``."""
    stuck: str
    """Why a running run makes no progress: loop, silent_stream, hung_tool, no_answer, no_progress."""
    now: PrintedNow | None
    """What a running run does; null if it is over, or if its process is not recorded."""
    instances: list[str]
    """Its processes."""
    missing: list[PrintedMissing]
    marks: list[str]


class PrintedRuns(TypedDict):
    """``playhead ls``: runs, newest first or in the requested order."""

    schema_version: Literal[1]
    runs: list[PrintedRun]


class PrintedSum(TypedDict):
    """The sum over runs that have something in common."""

    key: str
    """The value of the group; empty for the sum over all runs."""
    runs: int
    statuses: dict[str, int]
    """Runs by status."""
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs of which something has no known price: the cost is without it."""
    duration_ns: int
    duration_p50_ns: int | None
    """Median duration of ended runs (nearest rank); null if none has ended."""
    duration_p90_ns: int | None
    duration_p99_ns: int | None


class PrintedStats(TypedDict):
    """``playhead stats``: sums over runs, and over groups of them."""

    schema_version: Literal[1]
    total: PrintedSum
    groups: list[PrintedSum]
    truncated: bool
    """There are more runs than were looked at."""
    size_bytes: int
    position: int
    behind: int
    """Groups of spans and facts that cannot be searched yet."""


class PrintedRows(TypedDict):
    """``playhead sql``: what the statement returned."""

    schema_version: Literal[1]
    columns: list[str]
    rows: list[dict[str, str | int | float | None]]


class PrintedHit(TypedDict):
    """``playhead search``: a search hit, one object per line."""

    schema_version: Literal[1]
    run: str
    trace_id: str
    step: int | None
    """Null if it belongs to no step."""
    span_id: str
    """The span with the text; empty if there is none."""
    time_ns: int
    who: str
    """The source of the text: a role, a tool, the method of a request, an attribute, or a stream."""
    excerpt: str
    """The text around, as people read it."""
    highlights: list[tuple[int, int]]
    """Positions of the hit in the excerpt: first character, and the one after the last."""


class PrintedIndex(TypedDict):
    """``playhead search --rebuild``: amount of data that is not yet searchable."""

    schema_version: Literal[1]
    behind: int
    """Groups of spans and facts that cannot be searched yet."""


class PrintedMoment(TypedDict):
    """``playhead tail``: something that happened in a run, one object a line."""

    schema_version: Literal[1]
    run: str
    time_ns: int
    step: int
    event: Literal["started", "streaming", "ended", "failed"]
    name: str
    detail: str | None


class PrintedWaiting(TypedDict):
    """Undelivered data of a run."""

    facts: int
    spans: int


class PrintedRecording(TypedDict):
    """``playhead record``, on stderr: the recorded run; null means unknown."""

    schema_version: Literal[1]
    name: str | None
    trace_id: str | None
    status: RunStatus | None
    steps: int | None
    duration_ns: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    failed_checks: int | None
    endpoint: str | None
    """The endpoint, if it is not the data folder."""
    undelivered: PrintedWaiting | None
    """Undelivered data in the spool; null: none."""
    problem: str | None
    """Why not all of it could be delivered."""
    exit_code: int
    """The agent's exit status; 1 if a check failed and the agent did not."""


class PrintedBranch(TypedDict):
    """``playhead fork`` and ``playhead resume``, on stderr: the new run; one object for each of them."""

    schema_version: Literal[1]
    name: str | None
    trace_id: str | None
    status: RunStatus | None
    steps: int | None
    origin: str
    """Name of the original run."""
    folder: str | None
    """The folder with its files."""
    notes: list[str]
    """Notes in sentences."""
    exit_code: int


class PrintedSpread(TypedDict):
    """How far a figure goes over several runs."""

    min: float
    median: float
    max: float


class PrintedPath(TypedDict):
    """A way that runs took."""

    steps: list[str]
    runs: list[str]


class PrintedFork(TypedDict):
    """A step at which runs part, and the runs that took each way."""

    step: int
    ways: dict[str, list[str]]
    """Names of runs by their next step; `(end)`: the run had ended."""


class PrintedVariability(TypedDict):
    """``playhead variability``: how much the runs of an agent differ."""

    schema_version: Literal[1]
    runs: list[str]
    distinct_paths: int
    paths: list[PrintedPath]
    forks: list[PrintedFork]
    tool_distances: list[list[int]]
    """Edit distance between the tools of each pair of runs."""
    mean_tool_distance: float
    statuses: dict[str, int]
    spreads: dict[str, PrintedSpread]


class PrintedError(TypedDict):
    """The problem."""

    code: str
    what: str
    cause: str
    hint: str


class PrintedFailure(TypedDict):
    """Any command that fails, on stderr: an error of `docs/errors.md`."""

    schema_version: Literal[1]
    error: PrintedError


class PrintedOutputPiece(TypedDict):
    """Output that a program printed at once."""

    stream: str
    text: str


class PrintedReplayedStep(TypedDict):
    """A step of a replay."""

    number: int
    recorded_number: int | None
    """The recorded step that answered it."""
    name: str
    fidelity: str | None
    """Of its last attempt; null: it sent no request."""
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]
    printed: list[PrintedOutputPiece]
    """The program's output before the next step."""


class PrintedDivergence(TypedDict):
    """One difference between a replay and its tape."""

    kind: str
    what: str
    step: int | None
    after_step: bool
    path: str | None
    tape: str | None
    now: str | None
    nearest: str | None
    detail: str | None
    process: str | None


class PrintedOutput(TypedDict):
    """An output of a replay next to that of the tape."""

    identical: bool
    tape: str
    now: str


class PrintedProcess(TypedDict):
    """The verdict on one process of a run that has several."""

    name: str
    verdict: str
    exact: int
    asked: int
    detail: str | None


class PrintedAnsweredRequest(TypedDict):
    """A request that was answered from a span."""

    step: int
    name: str
    matched_by: str
    """messages, model and tools; messages and model; messages; order only."""
    differs: bool
    """Whether it asks for something else than the span says."""
    made_up: list[str]
    """Values that the answer needs and the span lacks."""
    left_out: list[str]
    """Values of the span that the answer does not contain."""


class PrintedSemanticReport(TypedDict):
    """``playhead replay`` of a run without a tape: its model calls were answered from its spans."""

    schema_version: Literal[1]
    run: str
    verdict: Literal["semantic", "diverged", "blocked"]
    exit_code: int
    answered: list[PrintedAnsweredRequest]
    refused: list[str]
    """Requests and effects that were refused, and why."""
    unused: list[str]
    """Calls of the run that answered no request."""
    not_rebuilt: list[str]
    """Calls of the run whose spans are incomplete, and what they lack."""
    tools: list[str]
    """Tool calls that a span answered."""
    tools_run: list[str]
    """Marked tools that ran for real, and why."""
    live: int
    """Requests that were made for real, as allowed."""
    exit_status: int
    """Exit status of the program."""
    network: str | None
    files: str | None
    notes: list[str]


class PrintedReport(TypedDict):
    """``playhead replay``: the fidelity report; with ``--from`` the steps from there on."""

    schema_version: Literal[1]
    run: str
    verdict: Literal["identical", "volatile", "semantic", "diverged", "blocked"]
    exit_code: int
    level: str
    """exchanges, causal or strict."""
    asked: int
    """Exchanges that the program requested."""
    fidelity: dict[str, int]
    """How many exchanges by fidelity."""
    boundaries: dict[str, dict[str, int]]
    """The same by kind of boundary."""
    reads: dict[str, dict[str, int]]
    """The same for reads of clocks and of random values."""
    outputs: dict[str, PrintedOutput]
    first_divergence: PrintedDivergence | None
    divergences: list[PrintedDivergence]
    step_fidelity: dict[str, str]
    """The worst fidelity among the requests of each step, by its number."""
    processes: list[PrintedProcess]
    """Of a run that has several, beginning with the first."""
    unused: list[str]
    """Recordings that answered nothing."""
    redacted: int
    """Values that were redacted before they reached the tape."""
    not_kept: dict[str, str]
    """Boundaries that the recording does not keep, and the lowest level that does."""
    volatile_outputs: list[str]
    """Outputs that differ in times and random values of the replay alone."""
    edited: list[str]
    """Parts that an edit at a fork answered, not the program."""
    network: str | None
    """The mechanism that blocked it: kernel or process; null if nothing was started."""
    files: str | None
    """The mechanism that blocked changes to files."""
    other_processes: str | None
    """The mechanism that blocked other processes, shared memory and queues."""
    notes: list[str]
    steps: NotRequired[list[PrintedReplayedStep]]
