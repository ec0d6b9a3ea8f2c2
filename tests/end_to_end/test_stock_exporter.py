"""An exporter that the program adds itself gets the spans that the receiver derives, whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from support.answers.client_forms import FORMS
from support.servers.otlp_server import OtlpServer, attributes
from support.servers.scripted import Reply, ScriptedServer
from support.starting.running import agent_environment, only_run, push_leftovers, receiver

from playhead_receiver.storage.spans.whole_spans import span_of, whole_span
from playhead_semconv import attributes as a

TESTS = Path(__file__).parents[1]

PROGRAM = """
import asyncio, sys
from types import SimpleNamespace
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from support.answers.client_forms import FORMS

url, endpoint = sys.argv[1:]
provider = trace.get_tracer_provider()
exporter = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=60)
provider.add_span_processor(BatchSpanProcessor(exporter))
server = SimpleNamespace(url=url, openai_url=f"{url}/v1")

async def asks(form, client):
    async with client:
        await form.run(client)

def step(form, retries=0):
    with trace.get_tracer("mine").start_as_current_span(f"step {form}") as span:
        span.set_attribute("mine", "yes")
        client = form.client(server, max_retries=retries)
        try:
            asyncio.run(asks(form, client)) if form.asynchronous else form.run(client)
        except Exception as problem:
            print(form, type(problem).__name__)

for form in FORMS:
    for _ in "good", "bad", "cut":
        step(form)
step(FORMS[0], retries=1)
provider.force_flush(60_000)
"""

BOOKKEEPING = frozenset((a.PLAYHEAD_DERIVED, a.PLAYHEAD_RESTS_ON))
"""How a span travels to a receiver that derives the rest."""


def answers() -> list[Reply]:
    """For each form a good answer, a bad one, and half of a good one; then one that is tried again."""
    found: list[Reply] = []
    for form in FORMS:
        found += [form.reply(), form.error(500), form.reply(truncate_at=90)]
    return [*found, FORMS[0].error(503), FORMS[0].reply()]


def told(span: Span) -> dict[str, Any]:
    """All that a span says."""
    said = {name: value for name, value in attributes(span).items() if name not in BOOKKEEPING}
    return {
        "name": span.name,
        "kind": span.kind,
        "parent": span.parent_span_id.hex(),
        "times": (span.start_time_unix_nano, span.end_time_unix_nano),
        "status": (span.status.code, span.status.message),
        "state": span.trace_state,
        "events": [(one.name, one.time_unix_nano, str(one.attributes)) for one in span.events],
        "links": [str(one) for one in span.links],
        "dropped": (span.dropped_attributes_count, span.dropped_events_count, span.dropped_links_count),
        "attributes": said,
    }


@pytest.mark.parametrize("level", ["exchanges", pytest.param("strict", marks=pytest.mark.acceptance)])
def test_a_stock_exporter_gets_what_the_receiver_derives(tmp_path: Path, level: str):
    script = tmp_path / "agent.py"
    script.write_text(PROGRAM)
    with ScriptedServer() as provider, OtlpServer() as sink, receiver(tmp_path / "data") as running:
        provider.script(answers())
        environ = agent_environment(
            running.http_endpoint,
            tmp_path / "spool",
            provider.url,
            PLAYHEAD_LEVEL=level,
            PYTHONPATH=str(TESTS),
        )
        launcher = Path(sys.executable).with_name("opentelemetry-instrument")
        words = [str(launcher), sys.executable, str(script), provider.url, sink.url]
        done = subprocess.run(
            words, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        push_leftovers(environ)
        run = only_run(running.store)
        stored = list(running.store.spans(bytes.fromhex(run.trace_id)))
        derived = {one.span_id: span_of(whole_span(running.store, one)) for one in stored}
        exported = {one.span_id: one for one in sink.spans()}
    travelled = [attributes(span_of(ResourceSpans.FromString(one.otlp))) for one in stored]
    assert not any(a.GEN_AI_OUTPUT_MESSAGES in at for at in travelled)
    calls = [one for one in exported.values() if a.PLAYHEAD_WIRE in attributes(one)]
    assert (len(calls), provider.unscripted) == (3 * len(FORMS) + 1, [])
    assert sum(a.GEN_AI_OUTPUT_MESSAGES in attributes(one) for one in calls) >= len(FORMS) // 2
    assert sum(one.status.code == 2 for one in calls) >= len(FORMS)
    # The span of the run itself ends when the program does, after its last flush.
    assert set(derived) >= set(exported)
    assert {derived[id].name for id in set(derived) - set(exported)} <= {"run agent.py"}
    for id, span in exported.items():
        assert told(derived[id]) == told(span)
