"""Runs in a list, as the API and ``playhead ls --json`` have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, cast

from typing_extensions import TypedDict

from playhead_receiver.queries.activity import Activity, Now, activity_of
from playhead_receiver.queries.run_texts import texts_of_runs
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.content.references import References

RunStatus: TypeAlias = Literal["running", "success", "failure", "partial", "interrupted"]


class Missing(TypedDict):
    """Facts that a process recorded and the receiver did not get."""

    instance: str
    first: int
    last: int


class RunItem(TypedDict):
    """A run in a list."""

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
    """For a fork or a resume, the original run and the step; otherwise empty."""
    started_ns: int
    ended_ns: int | None
    last_ns: int
    """Time of its latest data."""
    steps: int
    """Number of steps; spans and errors are numbers, too."""
    spans: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Included in the input tokens, as those written to a cache are."""
    cache_write_tokens: int
    reasoning_tokens: int
    """Included in the output tokens."""
    cost_usd: float | None
    """Null if no price is known."""
    unpriced: list[str]
    """Models without a known price; the cost excludes them."""
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
    now: Now | None
    """What a running run does; null if it is over, or if its process is not recorded."""
    instances: list[str]
    """Ids of its processes."""
    missing: list[Missing]
    marks: list[str]


def run_items(
    store: Store, runs: Sequence[RunSummary], references: References | None = None
) -> list[RunItem]:
    """Return runs as objects of plain values."""
    return [
        _run_item(run, own._asdict(), activity_of(store, run))
        for run, own in zip(runs, texts_of_runs(store, runs, references), strict=True)
    ]


def _run_item(run: RunSummary, others: dict[str, Any], doing: Activity | None) -> RunItem:
    others["missing"] = [
        Missing(instance=instance, first=first, last=last) for instance, first, last in run.missing
    ]
    others["now"] = None if doing is None else doing.to_json()
    names = RunItem.__annotations__
    return cast("RunItem", {one: others[one] if one in others else getattr(run, one) for one in names})
