"""A call of which several spans tell is one step with its tokens, for every reader."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from support.answers.wires import CLAUDE
from support.servers.scripted import ScriptedServer, json_reply
from support.starting.home import Home

from playhead_receiver.maintenance.call_metrics import CallMetrics
from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls
from playhead_receiver.storage import Batch, open_store

FRAMEWORK = """
import sys
import anthropic
from opentelemetry import trace

provider = trace.get_tracer_provider()
asks = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-5"}
with trace.get_tracer("framework").start_as_current_span("ChatAnthropic", attributes=asks) as span:
    client = anthropic.Anthropic(
        base_url=sys.argv[1], api_key="test", open_telemetry={"tracer_provider": provider}
    )
    said = client.messages.create(
        model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "Hello"}]
    )
    span.set_attribute("gen_ai.usage.input_tokens", said.usage.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", said.usage.output_tokens)
print(said.content[0].text)
"""
"""A framework's span, our own, and the span of the SDK, which a provider of one's own switches on."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("told-twice"), {})
    (home.folder / "agent.py").write_text(FRAMEWORK)
    with ScriptedServer() as server:
        server.script([json_reply(CLAUDE)])
        done = home.playhead("record", "--level", "exchanges", "agent.py", server.url)
    assert done.stdout == "Hi\n", done.stderr
    return home


def test_it_is_one_step_with_its_tokens(home: Home):
    (row,) = home.runs()
    assert (row["steps"], row["input_tokens"], row["output_tokens"]) == (1, 7, 3)
    run = home.run("last")
    named = [span.name for span in run.spans if span.operation]
    assert named == ["ChatAnthropic", "chat claude-sonnet-5", "anthropic.messages.create"]
    assert [(step.span.name, len(step.attempts)) for step in run.steps] == [("chat claude-sonnet-5", 1)]
    assert (run.usage.input_tokens, run.usage.output_tokens) == (7, 3)
    shown = json.loads(home.playhead("show", "last", "--json").stdout)
    assert (len(shown["steps"]), shown["input_tokens"]) == (1, 7)
    (group,) = json.loads(home.playhead("stats", "--json").stdout)["groups"]
    assert (group["steps"], group["input_tokens"], group["output_tokens"]) == (1, 7, 3)


def test_tail_has_one_line_for_it(home: Home):
    (line,) = home.playhead("tail").stdout.splitlines()
    assert "7→3 tok" in line
    told = [json.loads(line) for line in home.playhead("tail", "--json").stdout.splitlines()]
    assert [(one["step"], one["event"]) for one in told] == [
        *((1, "started"), (1, "streaming"), (1, "ended"))
    ]


def test_metrics_count_it_once(home: Home, tmp_path: Path):
    metrics = CallMetrics()
    with (
        closing(open_store(home.data_dir, read_only=True)) as kept,
        closing(open_store(tmp_path)) as new,
    ):
        run = kept.resolve("last")
        facts = [fact for one in run.instances for fact in kept.tape(bytes.fromhex(one)).facts()]
        new.commit(Batch(list(kept.spans(bytes.fromhex(run.trace_id))), facts, {}))
        UnnamedCalls(new, metrics.count).derive_new()
    sums = {
        (sample.name, sample.labels.get("gen_ai_token_type")): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name.endswith(("usage_sum", "duration_seconds_count"))
    }
    assert sums == {
        ("gen_ai_client_operation_duration_seconds_count", None): 1,
        ("gen_ai_client_token_usage_sum", "input"): 7,
        ("gen_ai_client_token_usage_sum", "output"): 3,
    }
