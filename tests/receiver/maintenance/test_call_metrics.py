"""Metrics of calls: each call once, with what is known of it; and names made up without end."""

from __future__ import annotations

from pathlib import Path

from conformance.suite.base import batch_of
from conformance.suite.meanings import request
from support.tapes.handmade import HandMade

from playhead_receiver.maintenance import call_metrics
from playhead_receiver.maintenance.call_metrics import CallMetrics
from playhead_receiver.maintenance.unnamed_calls import Meanings
from playhead_receiver.store import open_store
from playhead_semconv import attributes as a

DURATION = "gen_ai_client_operation_duration_seconds"
NAMED = "chat||gpt-4o||"
FOUND = "chat|openai|gpt-4o|gpt-4o-2024-08-06|api.openai.com"


def samples(metrics: CallMetrics) -> dict[str, float]:
    """Value by name, with operation, provider, models, host, and the metric's own label behind it."""
    found: dict[str, float] = {}
    for family in metrics.registry.collect():
        for name, labels, value, *_ in family.samples:
            if not name.endswith(("_created", "_bucket")):
                found[" ".join([name, "|".join(labels.values())])] = value
    return found


def counted(folder: Path, made: HandMade) -> dict[str, float]:
    store, metrics = open_store(folder), CallMetrics()
    try:
        store.commit(batch_of(made))
        meanings = Meanings(store, metrics.saw)
        meanings.of_new()
        assert meanings.of_new() == 0  # nothing is counted twice
        return samples(metrics)
    finally:
        store.close()


def test_a_call_is_counted_once_by_whichever_span_says_it(tmp_path: Path):
    made = HandMade().start()
    made.chat()  # named by its SDK, with an attempt below
    request(made)  # known by its bytes alone
    found = counted(tmp_path, made.exit())
    assert {name: value for name, value in found.items() if name.startswith(f"{DURATION}_count")} == {
        f"{DURATION}_count {NAMED}|": 1,
        f"{DURATION}_count {FOUND}|": 1,
    }
    assert found[f"gen_ai_client_token_usage_sum {NAMED}|input"] == 812
    assert found[f"gen_ai_client_token_usage_sum {NAMED}|output"] == 64
    assert found[f"gen_ai_client_token_usage_sum {FOUND}|input"] == 1000
    assert found[f"gen_ai_client_token_usage_count {FOUND}|output"] == 1


def call(made: HandMade, *, error: str = "", waits_s: float = 1.0, **attributes: object) -> None:
    at = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m"}
    number = made.begin("chat m", kind=3, **at)
    made.wait(waits_s)
    made.finish(number, error=error, **attributes)


def test_time_errors_and_answers_of_a_tape(tmp_path: Path):
    made = HandMade().start()
    call(made, waits_s=2.0, **{a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: 0.25})
    call(made, error="Later", **{a.ERROR_TYPE: "rate_limit"})
    call(made, **{a.PLAYHEAD_FIDELITY: "exact"})  # nobody was asked
    call(made, **{a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: 1e300})
    tool = made.begin("execute_tool f", **{a.GEN_AI_OPERATION_NAME: "execute_tool"})
    made.finish(tool, **{a.GEN_AI_TOOL_NAME: "f"})
    found = counted(tmp_path, made.exit())
    assert found[f"{DURATION}_sum chat||m|||"] >= 3
    assert found[f"{DURATION}_count chat||m|||"] == 2
    assert found[f"{DURATION}_count chat||m|||rate_limit"] == 1
    first = "gen_ai_client_operation_time_to_first_chunk_seconds"
    assert found[f"{first}_sum chat||m||"] == 0.25
    assert not any("execute_tool" in name for name in found)


def test_names_that_never_end_become_one(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(call_metrics, "MOST_KINDS", 4)
    made = HandMade().start()
    for number in range(20):
        call(made, **{a.GEN_AI_RESPONSE_MODEL: f"\x1b[2J{number}" + "x" * 5000})
    found = counted(tmp_path, made.exit())
    names = [name for name in found if name.startswith(f"{DURATION}_count")]
    assert len(names) <= 4 + 1 and sum(found[name] for name in names) == 20
    assert all("\x1b" not in name and len(name) < 500 for name in names)
    assert any("_OTHER" in name for name in names)
