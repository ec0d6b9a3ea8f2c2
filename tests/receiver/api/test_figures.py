"""Figures of checkpoints and replays, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.parser import text_string_to_metric_families
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.starting.running import until

from playhead_checkpoint import Lineage, RemoteCheckpoints
from playhead_checkpoint.store.conformance import conversation
from playhead_receiver.api.history import MOST_SAMPLES, MetricsHistory


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with on_stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def figures(stage: Stage) -> dict[str, float]:
    """The samples by name, with their labels in a fixed order."""
    answer = httpx.get(f"{stage.receiver.query_endpoint}/metrics", timeout=60)
    return {
        ",".join([sample.name, *(sample.labels[name] for name in sorted(sample.labels))]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_checkpoints_are_counted_by_kind_with_their_sizes(stage: Stage):
    assert figures(stage)["playhead_checkpoints"] == 0
    with RemoteCheckpoints(stage.receiver.query_endpoint) as store:
        first = store.put(conversation(500), Lineage(b"r" * 16, time_ns=1))
        store.put(conversation(501), Lineage(b"r" * 16, kind="auto"))
    with RemoteCheckpoints(stage.receiver.query_endpoint) as store:
        assert store.put(conversation(500), Lineage(b"r" * 16, time_ns=1)) == first
    url = f"{stage.receiver.query_endpoint}/v1/checkpoints/{first.id.hex()}"
    assert httpx.put(url, content=b"no checkpoint").status_code == 422
    found = figures(stage)
    assert found["playhead_checkpoints"] == 2
    assert found["playhead_checkpoints_put_total,manual,stored"] == 1
    assert found["playhead_checkpoints_put_total,auto,stored"] == 1
    assert found["playhead_checkpoints_put_total,manual,repeated"] == 1
    assert found["playhead_checkpoints_refused_total"] == 1
    assert found["playhead_checkpoint_state_bytes_sum,manual"] == first.size_bytes
    assert found["playhead_checkpoint_state_bytes_count,auto"] == 1
    both = found["playhead_checkpoint_state_bytes_sum,auto"] + first.size_bytes
    assert first.size_bytes < found["playhead_checkpoint_received_bytes_total"] < 0.6 * both
    assert found["playhead_checkpoint_store_bytes"] > 0


def test_a_replay_is_counted_with_its_fidelity(stage: Stage):
    script = stage.script("import playhead\nplayhead.tool(lambda: 1)()\n")
    done = stage.home.playhead("record", str(script))
    assert done.returncode == 0, done.stderr
    done = stage.home.playhead("replay", "last")
    assert done.returncode == 0, done.stderr
    found = figures(stage)
    assert found["playhead_replays_total,replay,identical"] == 1
    assert found["playhead_replay_seconds_count,replay"] == 1
    assert found["playhead_replayed_exchanges_total,exact"] == 1


def test_a_call_is_counted_with_its_tokens(stage: Stage):
    stage.provider.script([said_back])
    script = stage.script(ASKING + "print(asked('Hello'))\n")
    done = stage.home.playhead("record", str(script))
    assert (done.returncode, done.stdout) == (0, "You said Hello\n"), done.stderr
    until(lambda: any("token_usage" in name for name in figures(stage)), "the call is counted")
    found = figures(stage)
    (seconds,) = [name for name in found if "operation_duration_seconds_count" in name]
    assert found[seconds] == 1 and ",chat," in seconds and ",gpt-5.5," in seconds
    tokens = [value for name, value in found.items() if "token_usage_sum" in name]
    assert sorted(tokens) == [5, 12]


def test_what_is_no_end_of_a_replay_is_refused(stage: Stage):
    url = f"{stage.receiver.query_endpoint}/v1/replays"
    told = {"mode": "replay", "outcome": "blocked", "seconds": 0.5, "exchanges": {"blocked": 2}}
    assert httpx.post(url, json=told).status_code == 200
    for wrong in (
        {"mode": "x" * 1000},
        {"outcome": "well"},
        {"seconds": -1},
        {"seconds": True},
        {"exchanges": {"other": 1}},
        {"exchanges": {"exact": -1}},
        {"exchanges": {"exact": False}},
        {"more": 1},
    ):
        assert httpx.post(url, json=told | wrong).status_code == 422, wrong
    assert figures(stage)["playhead_replayed_exchanges_total,blocked"] == 2


def test_metrics_since_the_start_are_over_the_api_with_those_of_now(stage: Stage):
    def asked() -> dict[str, list[float | None]]:
        answer = httpx.get(f"{stage.receiver.query_endpoint}/v1/metrics/history", timeout=60).json()
        assert len(answer["time_ns"]) > 1 and answer["time_ns"] == sorted(answer["time_ns"])
        assert {len(values) for values in answer["metrics"].values()} == {len(answer["time_ns"])}
        return answer["metrics"]

    before = asked()
    assert before["playhead_spans_received_total"][0] == 0
    queries = "playhead_query_seconds_count"
    until(lambda: (asked()[queries][-1] or 0) > (before[queries][-1] or 0), "a query is counted")
    assert all(values[-1] is not None for values in before.values())


def test_samples_are_taken_again_and_again_and_the_oldest_go():
    registry = CollectorRegistry()
    behind = Gauge("playhead_forward_behind", "", ["destination"], registry=registry)
    behind.labels("1").set(7)
    Counter("playhead_other", "", registry=registry)
    history = MetricsHistory(registry, every_s=0)
    history.start()
    try:
        until(lambda: len(history.samples()) > MOST_SAMPLES, "a day is full")
    finally:
        history.stop()
    first, *_, last = history.samples()
    assert len(history.samples()) == MOST_SAMPLES + 1
    assert first[0] < last[0] and first[1] == last[1] == {'playhead_forward_behind{destination="1"}': 7}
