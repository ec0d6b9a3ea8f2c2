"""Counters of events that are not stored: puts of checkpoints, queries, replays.

They begin at zero when the receiver starts, as counters of Prometheus do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric

from playhead_checkpoint.store.engine import Put, Row

SIZES = tuple(1024.0 * 4**power for power in range(10))
"""Bounds for sizes of states: 1 KiB to 256 MiB."""
QUICK_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


class Tallies:
    """Counters of all tenants together. Safe from any thread."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self._puts = Counter(
            "playhead_checkpoints_put",
            "Checkpoints put, by kind; outcome: stored, or repeated (it existed).",
            ("kind", "outcome"),
            registry=own,
        )
        self._refused = Counter(
            "playhead_checkpoints_refused", "Checkpoints that could not be read or stored.", registry=own
        )
        self._states = Histogram(
            "playhead_checkpoint_state_bytes",
            "Sizes of stored states, each packed as a whole, without sharing.",
            ("kind",),
            registry=own,
            buckets=SIZES,
        )
        self._received = Counter(
            "playhead_checkpoint_received_bytes",
            "Bytes of packed states and new nodes of stored checkpoints.",
            registry=own,
        )
        self._questions = Histogram(
            "playhead_query_seconds",
            "Time from a query to the first byte of its response.",
            registry=own,
            buckets=QUICK_SECONDS,
        )
        self._replays = Counter(
            "playhead_replays",
            "Replays, forks and resumes that ended, by outcome.",
            ("mode", "outcome"),
            registry=own,
        )
        self._seconds = Histogram(
            "playhead_replay_seconds",
            "Duration of replays, forks and resumes.",
            ("mode",),
            registry=own,
            buckets=SECONDS,
        )
        self._exchanges = Counter(
            "playhead_replayed_exchanges",
            "Exchanges of replays, by fidelity; unused: recorded responses that were not requested.",
            ("fidelity",),
            registry=own,
        )

    def put(self, put: Put, stored: Row) -> None:
        """Count a checkpoint that was put; ``stored``: the one that is stored now."""
        kind = put.row.checkpoint.lineage.kind
        if stored is not put.row:
            self._puts.labels(kind, "repeated").inc()
            return
        self._puts.labels(kind, "stored").inc()
        self._states.labels(kind).observe(put.row.checkpoint.size_bytes)
        self._received.inc(len(put.row.packed) + sum(len(node.data) for node in put.fresh.values()))

    def refused(self) -> None:
        """Count a checkpoint that could not be stored."""
        self._refused.inc()

    def replayed(self, mode: str, outcome: str, seconds: float, exchanges: Mapping[str, int]) -> None:
        """Count a replay, fork or resume that ended; ``exchanges``: counts by fidelity."""
        self._replays.labels(mode, outcome).inc()
        self._seconds.labels(mode).observe(seconds)
        for fidelity, count in exchanges.items():
            self._exchanges.labels(fidelity).inc(count)

    def answered(self, took_s: float) -> None:
        """Count an answered query."""
        self._questions.observe(took_s)

    def collect(self) -> Iterator[Metric]:
        """All counters as metrics."""
        yield from self._registry.collect()
