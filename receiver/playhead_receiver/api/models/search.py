"""Objects of the query API: where something is said."""

from __future__ import annotations

from playhead_receiver.api.models.model import Model, TraceId


class SearchHit(Model):
    """A search hit."""

    run: str
    trace_id: TraceId
    step: int | None
    """Number of the step, as `playhead show` counts; null where it belongs to none."""
    span_id: str
    """Span that contains it; may be empty."""
    time_ns: int
    who: str
    """Who says it: a role, a tool, the method of a request, the name of an attribute, or a stream."""
    excerpt: str
    """Surrounding text."""
    highlights: list[tuple[int, int]]
    """Matches in the excerpt: start and end offset."""


class SearchPage(Model):
    """Search hits by run, newest first. A text is reported once per run."""

    hits: list[SearchHit]
    behind: int
    """Batches that are not indexed yet."""
