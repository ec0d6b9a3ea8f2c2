"""Reduces what a destination gets: leaves out attributes, and shortens values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_exporter.delivery import Signal
from playhead_receiver.api.compatibility.capping import Cap
from playhead_receiver.forward.destination import Destination


class Trimmer:
    """Trims spans by the options of a `Destination`. ``base_url``: of the API that has them complete."""

    def __init__(self, destination: Destination, base_url: str = "") -> None:
        self._keep = _pattern(destination.keep)
        self._drop = _pattern(destination.drop)
        self._cap = Cap(destination.limit_bytes, base_url)

    def trim(self, envelope: ResourceSpans) -> ResourceSpans:
        """Trim in place. ``dropped_attributes_count`` includes the attributes that were left out.

        ``drop`` applies to resource and scope too, ``keep`` only to the span, its events and links.
        """
        if self._keep or self._drop:
            self._leave_out(envelope.resource, about_span=False)
            for scoped in envelope.scope_spans:
                self._leave_out(scoped.scope, about_span=False)
                for span in scoped.spans:
                    for holder in (span, *span.events, *span.links):
                        self._leave_out(holder, about_span=True)
        return self._cap.apply(envelope)

    def trim_request(self, signal: Signal, body: bytes) -> bytes:
        """Trim a request of metrics or logs; it is returned unchanged if there is nothing to trim.

        ``keep`` applies to the attributes of log records. Attributes of data points identify their
        series, so only those that ``drop`` names are left out.
        """
        if not (self._keep or self._drop or self._cap.limit_bytes):
            return body
        if signal is Signal.METRICS:
            metrics = ExportMetricsServiceRequest.FromString(body)
            for entry in metrics.resource_metrics:
                self._trim_pairs(entry.resource)
                for scoped in entry.scope_metrics:
                    self._trim_pairs(scoped.scope)
                    for metric in scoped.metrics:
                        self._trim_pairs(metric, "metadata")
                        for point in _points(metric):
                            self._trim_pairs(point)
                            for exemplar in getattr(point, "exemplars", ()):
                                self._trim_pairs(exemplar, "filtered_attributes")
            return metrics.SerializeToString()
        logs = ExportLogsServiceRequest.FromString(body)
        for entry in logs.resource_logs:
            self._trim_pairs(entry.resource)
            for scoped in entry.scope_logs:
                self._trim_pairs(scoped.scope)
                for record in scoped.log_records:
                    self._trim_pairs(record, about_span=True)
                    self._cap.shorten(record.body)
        return logs.SerializeToString()

    def _trim_pairs(self, holder: Any, name: str = "attributes", *, about_span: bool = False) -> None:
        self._leave_out(holder, name, about_span=about_span)
        for pair in getattr(holder, name):
            self._cap.shorten(pair.value)

    def _leave_out(self, holder: Any, name: str = "attributes", *, about_span: bool) -> None:
        pairs = getattr(holder, name)
        kept = [pair for pair in pairs if self._stays(pair.key, about_span)]
        if len(kept) < len(pairs):
            if hasattr(holder, "dropped_attributes_count"):
                holder.dropped_attributes_count += len(pairs) - len(kept)
            del pairs[:]
            pairs.extend(kept)

    def _stays(self, name: str, about_span: bool) -> bool:
        if self._drop is not None and self._drop.match(name):
            return False
        return not about_span or self._keep is None or bool(self._keep.match(name))


def _points(metric: Any) -> Iterable[Any]:
    kind = metric.WhichOneof("data")
    return getattr(metric, kind).data_points if kind else ()


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    found = "|".join(translate(glob) for glob in globs)
    return re.compile(found) if found else None
