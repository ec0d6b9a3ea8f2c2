"""Every provider of a program is recorded, and none loses what it would have got without playhead."""

from __future__ import annotations

import json

import pytest
from support.starting.programs import attributes

MEMORY = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

def made(**options):
    exporter, provider = InMemorySpanExporter(), TracerProvider(**options)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return exporter, provider

def say(*exporters):
    print(json.dumps([[span.name for span in one.get_finished_spans()] for one in exporters]))
"""


def names(program) -> list[str]:
    return [span.name for span in program.spans()]


def test_the_programs_own_provider_is_the_global_one_and_recorded(program):
    run = program(
        MEMORY
        + """
early = trace.get_tracer("early")
exporter, provider = made()
trace.set_tracer_provider(provider)
assert trace.get_tracer_provider() is provider
with early.start_as_current_span("early"):
    with trace.get_tracer("late").start_as_current_span("late"):
        pass
provider.shutdown()
say(exporter)
"""
    )
    done = run.recorded(PLAYHEAD_QUIET="1")
    assert (done.stderr, json.loads(done.stdout)) == ("", [["late", "early", "run agent.py"]])
    assert names(run) == ["run agent.py", "early", "late"]


def test_a_root_that_is_open_already_goes_to_the_programs_provider(program):
    run = program(
        MEMORY
        + """
with trace.get_tracer("x").start_as_current_span("before"):
    exporter, provider = made()
    trace.set_tracer_provider(provider)
provider.shutdown()
say(exporter)
"""
    )
    assert json.loads(run.recorded().stdout) == [["before", "run agent.py"]]
    assert sorted(names(run)) == ["before", "run agent.py"]


def test_where_exporters_are_configured_theirs_stays_the_global_one(program):
    run = program(
        MEMORY
        + """
ours = trace.get_tracer_provider()
exporter, provider = made()
trace.set_tracer_provider(provider)
assert trace.get_tracer_provider() is ours
with provider.get_tracer("mine").start_as_current_span("mine"):
    pass
provider.force_flush()
say(exporter)
"""
    )
    done = run.instrumented(OTEL_TRACES_EXPORTER="console")
    assert "Overriding of current TracerProvider is not allowed" in done.stderr
    assert '[["mine"]]\n' in done.stdout
    assert sorted(names(run)) == ["mine", "run agent.py"]


def test_many_providers_and_samplers(program):
    run = program(
        MEMORY
        + """
one, first = made()
two, second = made(sampler=ALWAYS_OFF)
for number, provider in enumerate((first, second)):
    with provider.get_tracer("t").start_as_current_span(f"of {number}", attributes={"k": number}):
        pass
first.shutdown(); second.shutdown()
say(one, two)
"""
    )
    assert json.loads(run.recorded().stdout) == [["of 0"], []]
    assert sorted(names(run)) == ["of 0", "of 1", "run agent.py"]
    assert attributes(run.span("of 1")) == {"k": 1}


def test_a_provider_that_is_no_sdks_does_not_hide_the_record(program):
    run = program(
        """
from opentelemetry import trace
trace.set_tracer_provider(trace.NoOpTracerProvider())
assert type(trace.get_tracer_provider()) is trace.NoOpTracerProvider
import subprocess
subprocess.run(["true"], check=True)
"""
    )
    done = run.recorded()
    assert done.returncode == 0
    assert names(run) == ["run agent.py"]


def test_concurrent_processors(program):
    run = program(
        MEMORY
        + """
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor
exporter, provider = made(active_span_processor=ConcurrentMultiSpanProcessor())
trace.set_tracer_provider(provider)
with trace.get_tracer("x").start_as_current_span("one"):
    pass
provider.force_flush()
say(exporter)
"""
    )
    assert json.loads(run.recorded().stdout) == [["one"]]
    assert names(run) == ["run agent.py", "one"]


KINDS = """
from opentelemetry import context, trace
tracer = trace.get_tracer("mine")
for kind in ("SERVER", "CONSUMER", "CLIENT", "PRODUCER", "INTERNAL"):
    tracer.start_span(kind, kind=trace.SpanKind[kind]).end()
import threading
thread = threading.Thread(target=lambda: tracer.start_span("thread").end())
thread.start(); thread.join()
"""


def test_inbound_spans_are_not_adopted(program):
    run = program(KINDS)
    run.recorded()
    root = run.span("run agent.py")
    parents = {span.name: span.parent_span_id for span in run.spans()}
    assert parents == {
        "run agent.py": b"",
        "SERVER": b"",
        "CONSUMER": b"",
        "CLIENT": root.span_id,
        "PRODUCER": root.span_id,
        "INTERNAL": root.span_id,
        "thread": root.span_id,
    }


def test_no_root_without_a_span_that_needs_one(program):
    run = program(
        """
from opentelemetry import trace
trace.get_tracer("mine").start_span("in", kind=trace.SpanKind.SERVER).end()
"""
    )
    assert run.recorded().stderr == ""
    assert names(run) == ["in"]


@pytest.mark.parametrize("how", ["shutdown_on_exit=False", ""])
def test_a_span_is_recorded_whatever_the_provider_does_at_exit(program, how):
    run = program(
        MEMORY
        + f"""
exporter, provider = made({how})
trace.set_tracer_provider(provider)
trace.get_tracer("x").start_span("one").end()
"""
    )
    assert run.recorded().returncode == 0
    assert names(run) == ["run agent.py", "one"]
