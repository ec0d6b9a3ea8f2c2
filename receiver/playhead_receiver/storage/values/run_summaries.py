"""`RunSummary`, a run as lists show it, and `Query`, which selects runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

RunStatus: TypeAlias = Literal["running", "success", "failure", "partial", "interrupted"]


class RunSummary(msgspec.Struct, frozen=True):
    """A line of `playhead ls`: computed from a run's facts and spans."""

    name: str
    """Given by the store, e.g. ``refund-7``: agent and number; never reused."""
    trace_id: str
    """32 hex digits."""
    root_span_id: str
    """16 hex digits."""
    agent: str
    status: RunStatus
    started_ns: int
    ended_ns: int | None
    """End of the run; its last sign of life if it was interrupted; None while it runs."""
    steps: int
    """Logical calls and tool executions, pending ones included, and HTTP requests outside of them."""
    errors: int
    input_tokens: int
    output_tokens: int
    models: list[str]
    instances: list[str]
    """Process instances of the run, 32 hex digits each, in order of their start."""
    missing: list[tuple[str, int, int]]
    """Gaps: instance, first and last missing sequence number."""
    mode: str = "record"
    origin: str = ""
    """Run id of the run that this one replays or forks."""
    spans: int = 0
    """Number of spans, those that have started and not arrived included."""
    last_ns: int = 0
    """Last sign of life so far; equals ``ended_ns`` if the run is over."""
    cached_tokens: int = 0
    """Input tokens read from a provider's cache; part of ``input_tokens``."""
    cache_write_tokens: int = 0
    """Input tokens written to a provider's cache; part of ``input_tokens``."""
    reasoning_tokens: int = 0
    """Part of ``output_tokens``."""
    cost_usd: float | None = None
    """At the prices of the day of each call; None if no price of a used model is known."""
    unpriced: list[str] = []
    """Models that used tokens and have no known price. ``cost_usd`` does not include them."""
    providers: list[str] = []
    tools: list[str] = []
    """Names of the tools that were executed or called. Like all lists here, in order of first use."""
    error_types: list[str] = []
    """``error.type`` of the failed spans; ``_OTHER`` for a span without one."""
    version: str = ""
    """Version of the agent, else of its service."""
    environment: str = ""
    """``deployment.environment.name``."""
    conversation: str = ""
    """``gen_ai.conversation.id``, else ``session.id``; the first one."""
    arrived_ns: int = 0
    """When the store last received something of the run."""
    marks: list[str] = []
    """Marks that were put on the run: ``held``, ``flagged``, ``test``."""
    conversations: list[str] = []
    """All of them, ``conversation`` first."""
    users: list[str] = []
    """Users of the run, as `playhead_genai.run_fields` finds them; so are the next four."""
    tags: list[str] = []
    prompts: list[str] = []
    """Names of prompts."""
    prompt_versions: list[str] = []
    releases: list[str] = []
    """Versions of the services of the run."""
    reported: dict[str, list[str]] = {}
    """Words of the reports of its programs by field: goal, phase, decision, signal, parent,
    agent_type."""
    first_step: str = ""
    """Span id of the first call of a model, else of the first step; empty without steps."""
    last_step: str = ""
    """Span id of the call of a model that ended last, else of the step that did."""
    failure_codes: list[str] = []
    """Failures that the receiver derived, as ``tool/timeout``, and that the run did not recover from."""
    recovered_codes: list[str] = []
    """Those that it recovered from."""
    loop_names: list[str] = []
    """Its loops: ``search ×20``."""
    stuck: str = ""
    """Why it makes no progress, if it runs: one of `REASONS`; empty if it does."""
    is_process: bool = False
    """Whether it is the run of a recorded process; False for a request, and for spans without a tape."""

    def values_of(self, field: str) -> list[str]:
        """The values of a field of `playhead_genai.run_fields`."""
        return {
            "user": self.users,
            "tag": self.tags,
            "prompt": self.prompts,
            "prompt_version": self.prompt_versions,
            "release": self.releases,
        }[field]

    @property
    def agent_types(self) -> list[str]:
        """Types of its agents, which programs report, or attributes name."""
        return self.reported.get("agent_type", [])

    @property
    def is_idle(self) -> bool:
        """Whether a process succeeded without a step, as helper programs do."""
        return self.is_process and not self.steps and self.status == "success"

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it can be inspected or replayed: a request or span without a step."""
        return not self.steps and not self.is_process


REASONS = ("loop", "silent_stream", "hung_tool", "no_answer", "no_progress")
"""Why a running run is stuck."""

Sort: TypeAlias = Literal["started", "duration", "cost", "tokens", "steps", "errors"]


Sign: TypeAlias = Literal[":", ">=", "<=", ">", "<"]


class AttributeCondition(msgspec.Struct, frozen=True):
    """A condition that an attribute of some span or resource of a run must meet."""

    name: str
    sign: Sign
    """``:`` means equal."""
    value: str


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs, in which order. A condition that is None is not applied."""

    agent: str | None = None
    """Name of an agent, or its form in the names of runs."""
    status: RunStatus | None = None
    mode: str | None = "record"
    """``record`` includes forks and resumes, but not services; else one other mode; None: all modes."""
    limit: int = 50
    version: str | None = None
    environment: str | None = None
    conversation: str | None = None
    model: str | None = None
    """A model that the run used. ``provider``, ``tool`` and ``error_type`` work the same way."""
    provider: str | None = None
    tool: str | None = None
    error_type: str | None = None
    has_errors: bool | None = None
    """Whether a step of it failed, whatever the status of the run."""
    started_from_ns: int | None = None
    started_before_ns: int | None = None
    duration_from_ns: int | None = None
    duration_below_ns: int | None = None
    cost_from_usd: float | None = None
    """A run of unknown cost matches no bound on the cost."""
    cost_below_usd: float | None = None
    sort: Sort = "started"
    ascending: bool = False
    """Least first; else greatest first, which for ``started`` is newest first. Ties go by trace id."""
    origin: str = ""
    """Only replays, forks and resumes of the run with this trace id, 32 hex digits."""
    after: str = ""
    """Only runs after this one in the order: the `page_cursor` of the last run of a page."""
    traces: frozenset[bytes] | None = None
    """Only runs with these trace ids."""
    mark: str | None = None
    """Only runs that have this mark."""
    words: tuple[tuple[str, str], ...] = ()
    """Values that the run must have, each with its field: user, tag, failure, goal, decision, …"""
    loop: Literal["yes", "no"] | None = None
    stuck: str | None = None
    """``yes``, ``no``, or one of `REASONS`."""
    tokens_from: int | None = None
    """Bounds on the sum of input and output tokens."""
    tokens_below: int | None = None
    steps_from: int | None = None
    steps_below: int | None = None
    attributes: tuple[AttributeCondition, ...] = ()
    """All must be met; different spans of the run may meet them."""
    root: str = ""
    """Only this run, those that it triggered, those that they triggered, and so on."""
    session: str = ""
    """Only running runs whose sessions have this status: initializing, planning, executing, waiting."""
    without_idle: bool = False
    """Leave out runs that are `RunSummary.is_idle`."""


Need: TypeAlias = frozenset[bytes]
"""Keys of attributes (`runs.attribute_keys`); a trace must have at least one of them."""
