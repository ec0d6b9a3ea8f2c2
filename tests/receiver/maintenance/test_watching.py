"""Running runs are looked at when they change, and not again and again."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conformance.suite.base import batch_of, living
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_receiver.maintenance import findings
from playhead_receiver.maintenance.findings import FindingsThread
from playhead_receiver.queries.activity import Activity, activity_of
from playhead_receiver.storage import Batch, RunSummary, Store, open_store
from playhead_receiver.storage.api.maintenance import DerivedFindings
from playhead_receiver.storage.api.store import offered
from playhead_receiver.storage.values.stored import StoredSpan


def known_from_spans() -> Batch:
    """A span of any OpenTelemetry SDK, whose parent has not ended."""
    sent = ResourceSpans()
    span = sent.scope_spans.add().spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="work")
    span.parent_span_id = b"p" * 8
    span.start_time_unix_nano, span.end_time_unix_nano = 1, 2
    return Batch(spans=[StoredSpan(span.trace_id, span.span_id, sent.SerializeToString())])


def known_from_facts() -> Batch:
    """A process that runs."""
    return batch_of(living())


@pytest.mark.parametrize("sent, tells", [(known_from_facts, True), (known_from_spans, False)])
def test_a_running_run_that_does_not_change_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: Callable[[], Batch], tells: bool
):
    read: list[Activity | None] = []

    def reading(store: Store, run: RunSummary) -> Activity | None:
        read.append(activity_of(store, run))
        return read[-1]

    monkeypatch.setattr(findings, "activity_of", reading)
    monkeypatch.setattr(findings, "WATCH_S", 0.0)
    monkeypatch.setattr(findings, "RESTS", 0)
    with closing(open_store(tmp_path)) as store:
        derived = offered(store, DerivedFindings)
        assert derived is not None
        thread = FindingsThread(derived)
        store.commit(sent())
        for _ in range(5):
            thread.turn()
    assert [one is not None for one in read] == [tells]
