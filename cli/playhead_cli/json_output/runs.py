"""Lists of runs, statistics, search hits, recordings, forks and replays."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from playhead_receiver.queries.run_items import RunItem, RunStatus
from playhead_receiver.queries.search_hits import SearchHit
from playhead_receiver.queries.sums import RunStats


class PrintedRuns(TypedDict):
    """``playhead ls``: runs, newest first or in the requested order."""

    schema_version: Literal[1]
    runs: list[RunItem]


class PrintedStats(RunStats):
    """``playhead stats``: sums over runs, and over groups of them."""

    schema_version: Literal[1]


class PrintedRows(TypedDict):
    """``playhead sql``: what the statement returned."""

    schema_version: Literal[1]
    columns: list[str]
    rows: list[dict[str, str | int | float | None]]


class PrintedHit(SearchHit):
    """``playhead search``: a search hit, one object per line."""

    schema_version: Literal[1]


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
