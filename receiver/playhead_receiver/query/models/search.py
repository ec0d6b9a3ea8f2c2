"""Objects of the query API: where something is said."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model, TraceId


class SearchHit(Model):
    """Where something is said."""

    run: str
    trace_id: TraceId
    step: int | None
    """Number of the step, as `playhead show` counts; null where it belongs to none."""
    span_id: str
    """The span that says it; empty where none does."""
    time_ns: int
    who: str
    """Who says it: a role, a tool, the method of a request, the name of an attribute, or a stream."""
    excerpt: str
    """The text around, as people read it."""
    highlights: list[tuple[int, int]]
    """What was found in the excerpt: first character and the one behind."""


class SearchPage(Model):
    """What was found, run by run, the newest first; each text of a run once."""

    hits: list[SearchHit]
    behind: int
    """Groups of spans and facts that cannot be searched yet."""
