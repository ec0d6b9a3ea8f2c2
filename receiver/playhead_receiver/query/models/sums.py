"""Objects of the query API: sums over runs."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model


class Group(Model):
    """The sum over runs that have something in common."""

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
    """Null where nothing of it has a known price."""
    unpriced_runs: int
    """Runs of which something has no known price: the cost is without it."""
    duration_ns: int
    duration_p50_ns: int | None
    """Half of the runs that have ended took at most so long; null where none has. Nearest rank."""
    duration_p90_ns: int | None
    duration_p99_ns: int | None


class Stats(Model):
    """Sums over runs."""

    total: Group
    groups: list[Group]
    truncated: bool
    """There are more runs than were looked at."""
    size_bytes: int
    position: int
    behind: int
