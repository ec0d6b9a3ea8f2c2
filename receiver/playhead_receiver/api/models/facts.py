"""Objects of the query API: facts of a tape."""

from __future__ import annotations

from typing import Any

from playhead_receiver.api.models.model import Model


class FactLine(Model):
    """A fact of a tape."""

    instance: str
    seq: int
    time_ns: int
    name: str
    lane: str
    trace_id: str
    span_id: str
    exchange: str | None
    attributes: dict[str, Any]
    size_bytes: int | None
    """Size of the body; null if it has none."""
    text: str | None
    """The beginning of its body, where that is text and lies with the fact; all: `…/events/…/body`."""


class FactPage(Model):
    """Facts between two points of a run, by process."""

    events: list[FactLine]
    next: str | None
