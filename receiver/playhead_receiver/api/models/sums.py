"""Objects of the query API: sums over runs."""

from __future__ import annotations

from playhead_receiver.api.models.model import Model


class Group(Model):
    """Aggregates of a group of runs."""

    key: str
    runs: int
    statuses: dict[str, int]
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs with calls of unknown price, which the cost leaves out."""
    duration_ns: int
    duration_p50_ns: int | None
    """50th percentile (nearest rank) of finished runs; null if none has finished."""
    duration_p90_ns: int | None
    duration_p99_ns: int | None


class Stats(Model):
    """Sums over runs."""

    total: Group
    groups: list[Group]
    truncated: bool
    """Whether more runs matched than were read."""
    size_bytes: int
    position: int
    behind: int
