"""The figures of a receiver, for Prometheus. Nothing in them tells what is stored."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from playhead_receiver.query.serving import Serving


class Figures(Collector):
    """Reads them off a receiver when it is asked."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    def collect(self) -> Iterator[Metric]:
        """All figures."""
        tenants = self._serving.tenants
        counted = tenants.own.intake.counted
        for name, value, what in (
            ("playhead_spans_received", counted.spans, "Spans that were stored."),
            ("playhead_facts_received", counted.facts, "Facts that were stored."),
            ("playhead_log_records_received", counted.log_records, "Log records that are no facts."),
            ("playhead_metrics_received", counted.metrics, "Metrics that were counted, not kept."),
            ("playhead_items_rejected", counted.rejected, "Spans and log records that were rejected."),
        ):
            yield CounterMetricFamily(name, what, value=value)
        yield GaugeMetricFamily(
            "playhead_intake_bytes", "Request bytes in memory.", value=tenants.budget.taken_bytes
        )
        houses = tenants.open_houses()
        lags = [house.store.lag() for house in houses.values()]
        for name, value, what in (
            (
                "playhead_store_bytes",
                sum(house.store.size_bytes() for house in houses.values()),
                "Bytes in use on disk.",
            ),
            (
                "playhead_store_position",
                sum(house.store.position() for house in houses.values()),
                "Spans and facts stored since the store was made.",
            ),
            (
                "playhead_search_lag",
                sum(lag.bundles + lag.fact_runs for lag in lags),
                "Groups of spans and facts that cannot be searched yet.",
            ),
            ("playhead_tenants_open", len(houses), "Tenants whose stores are open."),
            ("playhead_live_streams", self._serving.live, "Live streams that are open."),
        ):
            yield GaugeMetricFamily(name, what, value=value)
        sent = CounterMetricFamily(
            "playhead_forward_spans", "Spans that a destination took.", labels=("destination",)
        )
        refused = CounterMetricFamily(
            "playhead_forward_spans_refused", "Spans that it refused for good.", labels=("destination",)
        )
        stuck = GaugeMetricFamily(
            "playhead_forward_stuck", "1: nothing gets through.", labels=("destination",)
        )
        left_out = CounterMetricFamily(
            "playhead_forward_traces_left_out",
            "Traces that went well and are not of its share.",
            labels=("destination",),
        )
        for one in self._serving.destinations():
            sent.add_metric([str(one.number)], one.sent)
            refused.add_metric([str(one.number)], one.refused)
            stuck.add_metric([str(one.number)], one.stuck)
            left_out.add_metric([str(one.number)], one.left_out)
        yield from (sent, refused, stuck, left_out)


def registry_of(serving: Serving) -> CollectorRegistry:
    """A registry that holds these figures alone."""
    registry = CollectorRegistry()
    registry.register(Figures(serving))
    return registry
