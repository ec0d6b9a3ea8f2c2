"""Metrics of a receiver for Prometheus. They reveal nothing about the stored data."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector, CollectorRegistry

from playhead_receiver.api.serving import Serving
from playhead_receiver.storage.api.maintenance import Statistics, StoredCheckpoints
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.values.run_summaries import REASONS
from playhead_replay.failures.codes import CODES


class Figures(Collector):
    """Reads the metrics from a receiver when they are collected."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        tenants = self._serving.tenants
        counted = tenants.own.intake.counted
        for name, value, what in (
            ("playhead_spans_received", counted.spans, "Spans that were stored."),
            ("playhead_facts_received", counted.facts, "Facts that were stored."),
            ("playhead_log_records_received", counted.log_records, "Log records that are no facts."),
            ("playhead_log_records_stored", counted.logs_stored, "Those that are stored with a run."),
            (
                "playhead_log_records_dropped",
                counted.logs_dropped,
                "Those without a trace id that no destination takes.",
            ),
            (
                "playhead_checkpoints_from_logs",
                counted.checkpoints_joined,
                "Checkpoints that were stored from log records in parts, or sent again.",
            ),
            (
                "playhead_checkpoints_from_logs_refused",
                counted.checkpoints_refused,
                "Those whose parts were complete and could not be stored.",
            ),
            ("playhead_metrics_received", counted.metrics, "Metrics; they are passed on, not stored."),
            ("playhead_items_rejected", counted.rejected, "Spans and log records that were rejected."),
            ("playhead_requests_refused", counted.refused, "Requests that the store could not accept."),
        ):
            yield CounterMetricFamily(name, what, value=value)
        yield GaugeMetricFamily(
            "playhead_intake_bytes", "Request bytes in memory.", value=tenants.budget.taken_bytes
        )
        open_tenants = tenants.open_services()
        stores = [services.store for services in open_tenants.values()]
        kept = [store.existing_checkpoints() for store in stores if isinstance(store, StoredCheckpoints)]
        checkpoints = [one for one in kept if one is not None]
        for name, value, what in (
            (
                "playhead_store_bytes",
                sum(store.size_bytes() for store in stores if isinstance(store, Statistics)),
                "Bytes in use on disk.",
            ),
            (
                "playhead_store_position",
                sum(store.position() for store in stores),
                "Spans and facts stored since the store was made.",
            ),
            (
                "playhead_search_lag",
                sum(store.lag().groups for store in stores if isinstance(store, Search)),
                "Batches that are not indexed yet.",
            ),
            (
                "playhead_checkpoints",
                sum(one.count() for one in checkpoints),
                "Checkpoints that are kept.",
            ),
            (
                "playhead_checkpoint_store_bytes",
                sum(one.stored_bytes() for one in checkpoints),
                "Bytes of checkpoints on disk, in addition to playhead_store_bytes.",
            ),
            ("playhead_tenants_open", len(open_tenants), "Tenants whose stores are open."),
            ("playhead_live_streams", self._serving.live, "Live streams that are open."),
        ):
            yield GaugeMetricFamily(name, what, value=value)
        yield GaugeMetricFamily(
            "playhead_runs_set_aside",
            "Runs that cannot be summed up and that maintenance skips.",
            value=tenants.skipped_runs(),
        )
        disorder = GaugeMetricFamily(
            "playhead_housekeeping_failing", "1 if the last maintenance pass failed.", labels=("pass",)
        )
        for name, failing in self._serving.failing().items():
            disorder.add_metric([name], int(failing))
        yield disorder
        destinations = self._serving.destinations()
        for family, name, field, what in (
            (CounterMetricFamily, "spans", "sent", "Spans that a destination accepted."),
            (CounterMetricFamily, "spans_refused", "refused", "Spans that it rejected permanently."),
            (GaugeMetricFamily, "stuck", "stuck", "1 if deliveries fail."),
            (
                GaugeMetricFamily,
                "behind",
                "behind",
                "Spans and facts in the store that are not forwarded yet.",
            ),
            (
                CounterMetricFamily,
                "traces_left_out",
                "left_out",
                "Successful traces outside of the sampled share.",
            ),
            (
                CounterMetricFamily,
                "requests",
                "passed",
                "Requests with metrics and log records that a destination accepted.",
            ),
            (
                CounterMetricFamily,
                "requests_refused",
                "passed_refused",
                "Requests with metrics and log records that it rejected or does not support.",
            ),
            (
                CounterMetricFamily,
                "requests_dropped",
                "dropped",
                "Requests with metrics and log records that were dropped because its queue was full.",
            ),
            (
                GaugeMetricFamily,
                "requests_waiting",
                "waiting",
                "Requests with metrics and log records in its queue.",
            ),
        ):
            family_metrics = family(f"playhead_forward_{name}", what, labels=("destination",))
            for one in destinations:
                family_metrics.add_metric([str(one.number)], getattr(one, field))
            yield family_metrics
        yield from self._findings()
        yield from self._serving.tallies.collect()

    def _findings(self) -> Iterator[Metric]:
        services = self._serving.tenants.open_services().values()
        found = [one.findings for one in services if one.findings is not None]
        stuck = GaugeMetricFamily(
            "playhead_runs_stuck", "Running runs that make no progress, by reason.", labels=("reason",)
        )
        for reason in REASONS:
            stuck.add_metric([reason], sum(one.stuck[reason] for one in found))
        yield stuck
        yield CounterMetricFamily(
            "playhead_loops_found", "Loops found in runs.", value=sum(one.loops for one in found)
        )
        failures = CounterMetricFamily(
            "playhead_failures_found", "Failures found in runs.", labels=("type", "code")
        )
        for kind, codes in CODES.items():
            for code in codes:
                failures.add_metric([kind, code], sum(one.failures[kind, code] for one in found))
        yield failures
        if self._serving.alerts is not None:
            senders = self._serving.alerts.senders
            for name, values, what in (
                ("sent", [one.sent for one in senders], "Alerts that were delivered."),
                ("failed", [one.failed for one in senders], "Alerts that could not be delivered."),
                (
                    "suppressed",
                    [one.suppressed for one in senders],
                    "Alerts that were left out because there were too many.",
                ),
            ):
                family = CounterMetricFamily(f"playhead_alerts_{name}", what, labels=("rule",))
                for number, value in enumerate(values, 1):
                    family.add_metric([str(number)], value)
                yield family


def registry_of(serving: Serving) -> CollectorRegistry:
    """A registry that contains only these metrics."""
    registry = CollectorRegistry()
    registry.register(Figures(serving))
    return registry
