"""Applies a `Query`: which runs it selects, and in which order. Engine-neutral and pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from playhead_core.errors import UsageError
from playhead_core.reports import WORD_FIELDS
from playhead_receiver.storage.runs.costs import MOST, NANO
from playhead_receiver.storage.runs.naming import agent_word
from playhead_receiver.storage.values.run_summaries import Query, RunSummary, Sort

FAILED, RECOVERED = "/failed", "/recovered"
"""Ends of the words that hold failures: ``tool/timeout/failed``."""
YES_OR_NO = ("loop", "stuck")
"""Fields of a query that are ``yes`` or ``no``."""

OrderKey = tuple[int, str]
"""The value that a run is sorted by, and its trace id."""


def measure_of(run: RunSummary, sort: Sort) -> int:
    """The value that a run is sorted by: ns, billionths of a dollar (-1: unknown), or a count."""
    if sort == "started":
        return run.started_ns
    if sort == "duration":
        return run.last_ns - run.started_ns
    if sort == "cost":
        return -1 if run.cost_usd is None else min(round(run.cost_usd * NANO), MOST)
    if sort == "tokens":
        return run.input_tokens + run.output_tokens
    return run.steps if sort == "steps" else run.errors


def order_of(run: RunSummary, query: Query) -> OrderKey:
    """A sort key for the order that ``query`` asks for."""
    measure = measure_of(run, query.sort)
    return (measure if query.ascending else -measure), run.trace_id


def page_cursor(run: RunSummary, query: Query) -> str:
    """The value of ``Query.after`` that continues a list after ``run``."""
    return f"{measure_of(run, query.sort)}.{run.trace_id}"


def parse_cursor(query: Query) -> OrderKey | None:
    """Parse ``Query.after``: measure and trace id; None if it is empty. `UsageError` if malformed."""
    if not query.after:
        return None
    measure, _, trace_id = query.after.partition(".")
    try:
        if len(bytes.fromhex(trace_id)) != 16:
            raise ValueError
        return int(measure), trace_id.lower()
    except ValueError:
        raise UsageError(f"{query.after!r} is not a cursor of a list of runs") from None


def asks_for(query: Query, run: RunSummary) -> bool:
    """Whether ``run`` meets the conditions of ``query``, wherever it is in the order.

    Except those on attributes, which only its spans tell (`attribute_conditions`).
    """
    return (
        _of_mode(query.mode, run.mode)
        and query.status in (None, run.status)
        and (query.agent is None or query.agent in (run.agent, agent_word(run.agent)))
        and query.version in (None, run.version)
        and query.environment in (None, run.environment)
        and (query.conversation is None or query.conversation in run.conversations)
        and (query.model is None or query.model in run.models)
        and (query.provider is None or query.provider in run.providers)
        and (query.tool is None or query.tool in run.tools)
        and (query.error_type is None or query.error_type in run.error_types)
        and all(word in _words(run, field) for field, word in query.words)
        and _is(query.loop, run.loop_names)
        and _is(query.stuck, [run.stuck] if run.stuck else [])
        and (query.traces is None or bytes.fromhex(run.trace_id) in query.traces)
        and run.origin.startswith(query.origin)
        and (query.mark is None or query.mark in run.marks)
        and not (query.without_idle and run.is_idle)
        and query.has_errors in (None, run.errors > 0)
        and _within(run.started_ns, query.started_from_ns, query.started_before_ns)
        and _within(run.last_ns - run.started_ns, query.duration_from_ns, query.duration_below_ns)
        and _within(measure_of(run, "tokens"), query.tokens_from, query.tokens_below)
        and _within(run.steps, query.steps_from, query.steps_below)
        and _within(run.cost_usd, query.cost_from_usd, query.cost_below_usd)
    )


def _words(run: RunSummary, field: str) -> Collection[str]:
    """The values of a field of a run that a query may name."""
    if field in WORD_FIELDS:
        return run.reported.get(field, ())
    if field == "failure":
        return failure_words(run.failure_codes, run.recovered_codes)
    return run.values_of(field)


def failure_words(failures: Collection[str], recovered: Collection[str]) -> set[str]:
    """The words by which failures are found: types, codes, and both; ``any``; ``recovered``.

    >>> sorted(failure_words(["tool/timeout"], []))
    ['any', 'timeout', 'tool', 'tool/timeout']
    """
    found = {word for one in (*failures, *recovered) for word in (one, *one.split("/", 1))}
    if found:
        found.add("any")
    if recovered:
        found.add("recovered")
    return found


def _is(wanted: str | None, values: Sequence[str]) -> bool:
    """Whether ``yes``, ``no`` or a value is true of a run."""
    if wanted in (None, "yes", "no"):
        return wanted is None or bool(values) == (wanted == "yes")
    return wanted in values


def _of_mode(wanted: str | None, mode: str) -> bool:
    if wanted == "record":
        return mode not in ("replay", "service")
    return wanted in (None, mode)


def _within(value: float | None, least: float | None, below: float | None) -> bool:
    if least is None and below is None:
        return True
    return value is not None and (least is None or value >= least) and (below is None or value < below)
