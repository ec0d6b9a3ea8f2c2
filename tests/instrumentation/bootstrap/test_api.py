"""What a program may ask of the recording: from inside, and when it starts it itself."""

from __future__ import annotations

import subprocess
import sys

from support.starting.programs import attributes

from playhead_semconv import attributes as a


def test_without_a_recording_nothing_happens():
    code = "import playhead; print(playhead.flush(1.0), playhead.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True 0.2.0\n", "")


def test_flush_says_whether_all_was_delivered(program):
    run = program(
        """
import playhead
from opentelemetry import trace
trace.get_tracer("x").start_span("one").end()
print(playhead.flush(0.5))
"""
    )
    assert run.instrumented(PLAYHEAD_QUIET="1").stdout == "False\n"


LATE = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
import atexit, openai

exporter, provider = InMemorySpanExporter(), TracerProvider(**eval(sys.argv[2]))
provider.add_span_processor(BatchSpanProcessor(exporter))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("early")
shut = exporter.shutdown
exporter.shutdown = lambda: print(json.dumps(sorted(s.name for s in exporter.get_finished_spans())))

from playhead_instrumentation.bootstrap.start import start_recording
recording = start_recording()
assert start_recording() is recording
with tracer.start_as_current_span("step"):
    openai.OpenAI(base_url=sys.argv[1]).chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
"""


def test_a_program_that_starts_it_late_itself(program, server):
    from support.answers.client_forms import FORMS

    server.script([FORMS[0].reply()])
    run = program(LATE)
    done = run.run("python", "agent.py", server.openai_url, "{}")
    # openai imports aiohttp where it is installed
    assert done.stderr.startswith("playhead: recording agent (openai, httpx2, aiohttp; exchanges)\n")
    assert done.stdout == '["POST", "chat gpt-4o", "run agent.py", "step"]\n'
    assert [span.name for span in run.spans()] == ["run agent.py", "step", "chat gpt-4o", "POST"]
    call = attributes(run.span("chat gpt-4o"))
    assert call[a.GEN_AI_RESPONSE_FINISH_REASONS] == ["stop"]


def test_a_sampler_that_was_there_before_is_asked_still(program, server):
    from support.answers.client_forms import FORMS

    server.script([FORMS[0].reply()])
    run = program(LATE)
    done = run.run("python", "agent.py", server.openai_url, "{'sampler': ALWAYS_OFF}")
    assert done.stdout == "[]\n"
    assert [span.name for span in run.spans()] == ["run agent.py", "step", "chat gpt-4o", "POST"]
