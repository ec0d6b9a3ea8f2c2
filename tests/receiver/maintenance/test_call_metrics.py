"""Metrics of calls: each call once, with what is known of it; and names made up without end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from conformance.suite.base import batch_of, run_of
from conformance.suite.derived_calls import request
from support.tapes.handmade import HandMade

from playhead_receiver.maintenance import call_metrics
from playhead_receiver.maintenance.call_metrics import CallMetrics
from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls
from playhead_receiver.storage import Batch, open_store
from playhead_replay import Run
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


def counted(folder: Path, made: HandMade, looks: Sequence[slice] = ()) -> dict[str, float]:
    """The samples after a run has come; ``looks``: its spans that come before each look."""
    store, metrics = open_store(folder), CallMetrics()
    try:
        meanings = UnnamedCalls(store, metrics.count)
        for some in looks:
            store.commit(Batch(made.spans[some], made.facts, {}))
            meanings.derive_new()
        store.commit(batch_of(made))
        meanings.derive_new()
        assert meanings.derive_new() == 0  # nothing is counted twice
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


MODEL = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "m"}
USED = {a.GEN_AI_USAGE_INPUT_TOKENS: 8, a.GEN_AI_USAGE_OUTPUT_TOKENS: 2}


def framework(made: HandMade, *, sums: bool = True, says: bool = True) -> None:
    """An agent of a framework, which sums up; its call, a span of its own, and the client's call."""
    agent = made.begin("invoke_agent", **{a.GEN_AI_OPERATION_NAME: "invoke_agent"})
    outer = made.begin("ChatOpenAI", parent=agent, **MODEL)
    middle = made.begin("of the framework", parent=outer)
    call = made.begin("chat m", parent=middle, kind=3, **MODEL)
    attempt = made.begin("POST", parent=call, kind=3, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.finish(attempt)
    made.wait(1)
    made.finish(call, **(USED if says else {}))
    made.finish(middle)
    made.finish(outer, **USED)
    made.finish(agent, **(USED if sums else {}))


@pytest.mark.parametrize("foreign", [False, True], ids=["with starts", "without"])
@pytest.mark.parametrize("each", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize("says", [True, False], ids=["the client says it", "only the framework"])
def test_a_framework_around_a_client_is_counted_once(
    tmp_path: Path, foreign: bool, each: bool, says: bool
):
    made = HandMade().start()
    framework(made, says=says)
    made.exit()
    if foreign:
        made.facts.clear()
    looks = [slice(at, at + 1) for at in range(len(made.spans))] if each else ()
    found = counted(tmp_path, made, looks)
    told = {name: value for name, value in found.items() if "_count" in name or "usage_sum" in name}
    kind = "chat||m||"
    assert told == {
        f"{DURATION}_count {kind}|": 1,
        f"gen_ai_client_token_usage_count {kind}|input": 1,
        f"gen_ai_client_token_usage_sum {kind}|input": 8,
        f"gen_ai_client_token_usage_count {kind}|output": 1,
        f"gen_ai_client_token_usage_sum {kind}|output": 2,
    }
    with closing(open_store(tmp_path)) as store:
        run = run_of(store, made.trace_id)
        assert (run.steps, run.input_tokens, run.output_tokens) == (1, 8, 2)
        shown = Run.load(store, run.trace_id)
    assert (len(shown.steps), shown.usage.input_tokens, shown.usage.output_tokens) == (1, 8, 2)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)], ids=["ours first", "ours last"])
@pytest.mark.parametrize("each", [False, True], ids=["at once", "one by one"])
def test_a_span_beside_ours_is_counted_once(tmp_path: Path, order: tuple[int, ...], each: bool):
    """Callbacks of a framework make no span the current one."""
    made = HandMade().start()
    beside = made.begin("ChatOpenAI.chat", **MODEL)
    made.wait(1)
    ours = made.begin("chat m", kind=3, **MODEL)
    made.wait(1)
    made.finish(ours, **USED, **{a.PLAYHEAD_WIRE: "openai.chat"})
    made.finish(beside, **USED)
    made.exit()
    made.spans = [made.spans[at] for at in order]
    found = counted(tmp_path, made, [slice(at, at + 1) for at in order] if each else ())
    assert sum(value for name, value in found.items() if f"{DURATION}_count" in name) == 1
    assert sum(value for name, value in found.items() if "usage_sum" in name) == 10
    with closing(open_store(tmp_path)) as store:
        run = run_of(store, made.trace_id)
        shown = Run.load(store, run.trace_id)
    assert (run.steps, run.input_tokens) == (len(shown.steps), shown.usage.input_tokens) == (1, 8)


def test_a_call_that_comes_after_its_framework_is_counted_already(tmp_path: Path):
    made = HandMade().start()
    framework(made)
    made.spans.reverse()
    found = counted(tmp_path, made.exit(), [slice(at, at + 1) for at in range(len(made.spans))])
    assert sum(value for name, value in found.items() if f"{DURATION}_count" in name) == 1
    assert sum(value for name, value in found.items() if "usage_sum" in name) == 10


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
