"""Runs of agents that speak OpenInference or OpenLLMetry are listed and filtered as others are."""

from typing import Any

import httpx
import pytest
from support.answers.dialects import LANGFUSE, LANGSMITH, OPENINFERENCE, OPENLLMETRY, VERCEL
from support.tapes.batches import span_of

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_replay import Run
from playhead_semconv import attributes as a

TRACE = b"d" * 16
TOOLS: dict[str, dict[str, Any]] = {
    "openinference": {"openinference.span.kind": "TOOL", "tool.name": "weather"},
    "openllmetry": {"traceloop.span.kind": "tool", "traceloop.entity.name": "weather"},
}


@pytest.mark.parametrize(
    ("dialect", "told"), [("openinference", OPENINFERENCE), ("openllmetry", OPENLLMETRY)]
)
def test_a_run_of_another_dialect(
    api: httpx.Client, receiver: Receiver, dialect: str, told: dict[str, Any]
):
    call = span_of(TRACE, 1, parent=3, service="planner", name="ChatCompletion", **told)
    tool = span_of(TRACE, 2, parent=3, service="planner", name="weather", **TOOLS[dialect])
    root = span_of(TRACE, 3, service="planner", name="main")
    receiver.store.commit(Batch([call, tool, root]))
    (run,) = api.get("/v1/runs", params={"q": "model:gpt-4o tool:weather conversation:s-1"}).json()[
        "runs"
    ]
    assert (run["trace_id"], run["steps"]) == (TRACE.hex(), 2)
    assert (run["input_tokens"], run["cached_tokens"], run["output_tokens"]) == (812, 500, 64)
    assert run["cost_usd"] > 0
    lines = api.get(f"/v1/runs/{TRACE.hex()}").json()["spans"]
    assert {(line["operation"], line["tool"], line["model"]) for line in lines} == {
        ("", "", ""),
        ("chat", "", "gpt-4o"),
        ("execute_tool", "weather", ""),
    }
    said = api.get(f"/v1/spans/{TRACE.hex()}/{1:016x}/messages").json()
    assert [message["role"] for message in said["input_messages"]] == ["user", "assistant", "tool"]
    assert said["output_messages"][0]["parts"][0]["content"] == "Take an umbrella."
    assert api.get(f"/v1/spans/{TRACE.hex()}/{1:016x}/raw").content == call.otlp
    shown = Run.load(receiver.store, TRACE.hex())
    assert [step.span.operation for step in shown.steps] == ["chat", "execute_tool"]


@pytest.mark.parametrize("told", [LANGFUSE, LANGSMITH, VERCEL], ids=["langfuse", "langsmith", "vercel"])
def test_messages_as_they_were_given_to_the_sdk(
    api: httpx.Client, receiver: Receiver, told: dict[str, Any]
):
    receiver.store.commit(Batch([span_of(TRACE, 1, service="planner", name="call", **told)]))
    said = api.get(f"/v1/spans/{TRACE.hex()}/{1:016x}/messages").json()
    kinds = [part["type"] for message in said["input_messages"] for part in message["parts"]]
    assert kinds == ["text", "tool_call", "tool_call_response"]
    assert said["output_messages"][0]["parts"][0]["content"] == "Take an umbrella."
    (run,) = api.get("/v1/runs", params={"q": "model:gpt-4o agent:planner"}).json()["runs"]
    assert run["steps"] == 1


def test_what_was_recorded_is_not_counted_twice(api: httpx.Client, receiver: Receiver):
    ours = span_of(
        TRACE,
        1,
        parent=2,
        instance=b"i" * 16,
        **{a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_USAGE_INPUT_TOKENS: 812},
    )
    theirs = span_of(TRACE, 2, instance=b"i" * 16, **OPENINFERENCE)
    receiver.store.commit(Batch([ours, theirs]))
    run = api.get(f"/v1/runs/{TRACE.hex()}/summary").json()
    assert (run["steps"], run["input_tokens"]) == (1, 812)
    assert len(Run.load(receiver.store, TRACE.hex()).steps) == 1
