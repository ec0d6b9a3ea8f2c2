"""Metrics of the last day, for charts that begin before a page was opened. Kept in memory only."""

from __future__ import annotations

import sys
import time
from collections import deque

from prometheus_client.registry import Collector

from playhead_receiver.maintenance.background import RepeatingThread

EVERY_S = 60.0
MOST_SAMPLES = 24 * 60
SAMPLED = frozenset(
    (
        "playhead_spans_received_total",
        "playhead_facts_received_total",
        "playhead_items_rejected_total",
        "playhead_requests_refused_total",
        "playhead_query_seconds_count",
        "playhead_search_lag",
        "playhead_store_bytes",
        "playhead_checkpoint_store_bytes",
        "playhead_forward_behind",
    )
)
"""Names in `/metrics`. Those of a destination have its number as a label."""


class MetricsHistory(RepeatingThread):
    """Samples metrics once a minute, and drops samples that are older than a day."""

    def __init__(self, metrics: Collector, every_s: float = EVERY_S) -> None:
        super().__init__("metrics")
        self._metrics = metrics
        self._every_s = every_s
        self._samples: deque[tuple[int, dict[str, float]]] = deque(maxlen=MOST_SAMPLES)

    def turn(self) -> float:
        """Take a sample."""
        self._samples.append(self._sample())
        return self._every_s

    def samples(self) -> list[tuple[int, dict[str, float]]]:
        """Time (ns since 1970) and values by name of each sample, oldest first; the last is of now."""
        return [*self._samples, self._sample()]

    def _sample(self) -> tuple[int, dict[str, float]]:
        # Names are interned: each of 1,440 samples would keep its own copies.
        return time.time_ns(), {
            sys.intern(
                one.name + "".join(f'{{{key}="{of}"}}' for key, of in one.labels.items())
            ): one.value
            for metric in self._metrics.collect()
            for one in metric.samples
            if one.name in SAMPLED
        }
