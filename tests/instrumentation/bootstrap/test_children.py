"""One trace over many processes: children, forks, workers; no span twice."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from support.long import long
from support.starting.programs import attributes

from playhead_semconv import attributes as a
from playhead_semconv import events as e

CHILD = """
from opentelemetry import trace
trace.get_tracer("child").start_span("in child").end()
"""


def parents(program) -> dict[str, str]:
    """Name of each span → name of its parent; every span there once, all in one trace."""
    spans = program.spans()
    assert max(Counter(span.span_id for span in spans).values()) == 1
    assert len({span.trace_id for span in spans}) == 1
    by_id = {span.span_id: span.name for span in spans}
    return {span.name: by_id.get(span.parent_span_id, "") for span in spans}


CAPTURES = """
import subprocess, sys
child = subprocess.run([sys.executable, "child.py"], capture_output=True, text=True)
print(child.stdout, [child.stderr], sep="")
"""
CAPTURED = """
from playhead_instrumentation.bootstrap.start import current
print(current() and current().settings.quiet)
"""


def test_a_child_leaves_what_recovers_by_itself_to_its_parents_messages(program):
    run = program(CAPTURES)
    (run.folder / "child.py").write_text(CAPTURED, "utf-8")
    assert run.instrumented().stdout == "True\n['']\n"


def test_only_the_first_process_says_that_nothing_is_recorded(program):
    run = program(CAPTURES)
    (run.folder / "child.py").write_text(CAPTURED, "utf-8")
    for start in (run.instrumented, run.recorded):
        done = start(PLAYHEAD_LEVEL="hard")
        assert done.stdout == "None\n['']\n"
        assert done.stderr.count("playhead: nothing is recorded") == 1


@pytest.mark.parametrize(
    "how",
    [
        long("subprocess.run([sys.executable, 'child.py'], check=True)"),
        "subprocess.run([sys.executable, 'child.py'], check=True, env={**os.environ, 'A': 'b'})",
        long("subprocess.run([sys.executable, 'child.py'], check=True, env=dict(os.environb))"),
        "subprocess.check_output(f'{sys.executable} child.py', shell=True)",
        "asyncio.run(spawn())",
    ],
)
def test_a_python_child_goes_on_with_the_trace(program, how):
    run = program(
        f"""
import asyncio, os, subprocess, sys
from opentelemetry import trace
async def spawn():
    child = await asyncio.create_subprocess_exec(sys.executable, "child.py")
    assert await child.wait() == 0
with trace.get_tracer("x").start_as_current_span("step"):
    {how}
print("TRACEPARENT" in os.environ)
"""
    )
    (run.folder / "child.py").write_text(CHILD, "utf-8")
    done = run.instrumented()
    assert (done.stdout, done.stderr) == ("False\n", "playhead: recording agent\n")
    assert parents(run) == {
        "run agent.py": "",
        "step": "run agent.py",
        "run child.py": "step",
        "in child": "run child.py",
    }
    starts = run.facts(e.PLAYHEAD_PROCESS_START)
    assert len({fact.trace_id for fact in starts}) == 1
    assert len({fact.span_id for fact in starts}) == 2
    assert [fact.attributes.get(a.PLAYHEAD_PROCESS_PARENT_INSTANCE) for fact in starts] == [
        None,
        starts[0].instance.hex(),
    ]


def test_baggage_and_trace_state_go_along(program):
    run = program(
        """
import subprocess, sys
from opentelemetry import baggage, context
context.attach(baggage.set_baggage("tenant", "t 1"))
subprocess.run([sys.executable, "child.py"], check=True)
"""
    )
    (run.folder / "child.py").write_text(
        "from opentelemetry import baggage, trace\n"
        "span = trace.get_tracer('c').start_span('in child')\n"
        "print(baggage.get_baggage('tenant'), span.get_span_context().trace_state.to_header())\n",
        "utf-8",
    )
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    done = run.recorded(TRACEPARENT=traceparent, TRACESTATE="vendor=1")
    assert done.stdout == "t 1 vendor=1\n", done.stderr
    assert "Traceback" not in done.stderr
    roots = {span.name: span for span in run.spans()}
    assert roots["run agent.py"].parent_span_id.hex() == "b7ad6b7169203331"
    assert roots["run child.py"].parent_span_id == roots["run agent.py"].span_id
    assert {span.trace_id.hex() for span in roots.values()} == {"0af7651916cd43dd8448eb211c80319c"}


def test_the_child_of_a_named_agent_is_a_run_of_its_script(program):
    run = program("import subprocess, sys; subprocess.run([sys.executable, 'child.py'], check=True)")
    (run.folder / "child.py").write_text(CHILD, "utf-8")
    run.recorded(PLAYHEAD_AGENT="refund")
    assert parents(run) == {
        "invoke_agent refund": "",
        "run child.py": "invoke_agent refund",
        "in child": "run child.py",
    }


def test_a_childs_trace_that_the_program_chose_stays(program):
    other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    run = program(
        f"""
import os, subprocess, sys
subprocess.run([sys.executable, "child.py"], env={{**os.environ, "TRACEPARENT": "{other}"}}, check=True)
"""
    )
    (run.folder / "child.py").write_text(CHILD, "utf-8")
    run.recorded()
    assert run.span("run child.py").parent_span_id.hex() == "b7ad6b7169203331"


def test_the_environment_of_a_child_is_otherwise_what_it_was(program):
    run = program(
        """
import json, os, subprocess
given = {"PATH": os.environ["PATH"], "ONLY": "this"}
print(subprocess.check_output(["env"], env=given).decode().split())
print(given)
"""
    )
    first, second = run.recorded(PLAYHEAD_QUIET="1").stdout.splitlines()
    assert sorted(word.partition("=")[0] for word in json.loads(first.replace("'", '"'))) == [
        "ONLY",
        "PATH",
        "PLAYHEAD_PARENT_AGENT",
        "PLAYHEAD_PARENT_EXCHANGE",
        "PLAYHEAD_PARENT_INSTANCE",
        "PLAYHEAD_PARENT_JOINS",
        "TRACEPARENT",
    ]
    assert "TRACEPARENT" not in second


FORK = """
import os, sys
from opentelemetry import trace
tracer = trace.get_tracer("x")
with tracer.start_as_current_span("before"):
    child = os.fork()
    if child == 0:
        tracer.start_span("inner").end()
tracer.start_span("child after" if child == 0 else "parent after").end()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_after_a_fork_no_span_is_recorded_twice(program):
    run = program(FORK)
    assert run.recorded().returncode == 0
    spans = run.spans()
    assert max(Counter(span.span_id for span in spans).values()) == 1
    roots = [span for span in spans if span.name == "run agent.py"]
    assert [root.parent_span_id for root in roots] == [b"", roots[0].span_id]
    by_id = {span.span_id: span.name for span in spans}
    found = {span.name: by_id[span.parent_span_id] for span in spans if span not in roots}
    assert found == {
        "before": "run agent.py",
        "inner": "before",
        "parent after": "run agent.py",
        "child after": "run agent.py",
    }
    assert run.span("child after").parent_span_id == roots[1].span_id
    records = run.records()
    starts = run.facts(e.PLAYHEAD_PROCESS_START)
    assert [fact.attributes.get(a.PLAYHEAD_PROCESS_PARENT_INSTANCE) for fact in starts] == [
        None,
        starts[0].instance.hex(),
    ]
    assert [fact.span_id for fact in starts] == [root.span_id for root in roots]
    assert len(records) == 2


def test_after_a_fork_no_span_is_exported_twice(program):
    run = program(FORK)
    done = run.instrumented(OTEL_TRACES_EXPORTER="console")
    ids = [line for line in done.stdout.splitlines() if '"span_id"' in line]
    assert max(Counter(ids).values()) == 1
    assert len(ids) == 6


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(program, method):
    run = program(
        f"""
import multiprocessing
from opentelemetry import trace

def work():
    trace.get_tracer("w").start_span("work").end()

if __name__ == "__main__":
    with trace.get_tracer("x").start_as_current_span("step"):
        context = multiprocessing.get_context("{method}")
        worker = context.Process(target=work)
        worker.start()
        worker.join()
        assert worker.exitcode == 0
"""
    )
    done = run.recorded()
    assert done.returncode == 0, done.stderr
    spans = run.spans()
    assert max(Counter(span.span_id for span in spans).values()) == 1
    assert len({span.trace_id for span in spans}) == 1
    assert [span.name for span in spans].count("work") == 1
    assert "work" not in [fact.attributes.get("x") for fact in run.facts()]
    # Whichever of them is heard first, the run is named after the agent.
    named = a.PLAYHEAD_PROCESS_PARENT_AGENT, a.PLAYHEAD_RUN_AGENT
    started = run.facts(e.PLAYHEAD_PROCESS_START)
    said = [[fact.attributes[name] for name in named if name in fact.attributes] for fact in started]
    assert len(said) == 2
    assert {words[0] for words in said} == {"agent"}


CALL = """
import openai, os, sys
client = openai.OpenAI(base_url=sys.argv[1])
def ask(stream=False):
    return client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "Hello"}], stream=stream)
"""


def test_a_stream_that_is_open_over_a_fork_is_one_span(program, server):
    from support.answers.client_forms import FORMS
    from support.servers.scripted import Gate, sse_reply

    form = next(form for form in FORMS if form.name == "chat create stream")
    gate = Gate()
    parts = list(form.reply().parts)
    server.script([sse_reply([*parts[:2], gate, *parts[2:]])])
    run = program(
        CALL
        + """
stream = ask(stream=True)
next(stream)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
import urllib.request
print("forked", flush=True)
for _ in stream:
    pass
"""
    )
    gate.open()
    done = run.recorded(server.openai_url)
    assert done.returncode == 0, done.stderr
    calls = [span for span in run.spans() if span.name == "chat gpt-4o"]
    attempts = [span for span in run.spans() if span.name == "POST"]
    assert (len(calls), len(attempts)) == (1, 1)
    assert attributes(calls[0])[a.GEN_AI_RESPONSE_FINISH_REASONS] == ["stop"]
    assert attempts[0].parent_span_id == calls[0].span_id


def test_held_streams_and_late_spans_are_there_after_a_normal_exit(program, server):
    from support.answers.client_forms import FORMS
    from support.servers.scripted import Gate, sse_reply

    form = next(form for form in FORMS if form.name == "chat create stream")
    gate = Gate()
    parts = list(form.reply().parts)
    server.script([sse_reply([*parts[:2], gate, *parts[2:]])])
    run = program(
        CALL
        + """
stream = ask(stream=True)
next(stream); next(stream)
"""
    )
    done = run.instrumented("python", "agent.py", server.openai_url, OTEL_TRACES_EXPORTER="console")
    gate.open()
    call = attributes(run.span("chat gpt-4o"))
    assert call[a.PLAYHEAD_END_HOW] == "abandoned"
    assert '"content":"Hi"' in call[a.GEN_AI_OUTPUT_MESSAGES]
    root = run.span("run agent.py")
    assert run.span("chat gpt-4o").parent_span_id == root.span_id
    assert [line.strip() for line in done.stdout.splitlines() if '"name"' in line] == [
        '"name": "POST",',
        '"name": "chat gpt-4o",',
        '"name": "run agent.py",',
    ]


def test_calls_from_threads_and_daemons(program, server):
    from support.answers.client_forms import FORMS

    form = next(form for form in FORMS if form.name == "chat create")
    server.script([form.reply()], repeat=True)
    run = program(
        CALL
        + """
import threading
from concurrent.futures import ThreadPoolExecutor
thread = threading.Thread(target=ask, daemon=True)
thread.start(); thread.join()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(lambda _: ask(), range(2)))
late = threading.Thread(target=ask)
late.start()
"""
    )
    assert run.recorded(server.openai_url).returncode == 0
    root = run.span("run agent.py")
    calls = [span for span in run.spans() if span.name == "chat gpt-4o"]
    assert [span.parent_span_id for span in calls] == [root.span_id] * 4
    assert all(a.GEN_AI_OUTPUT_MESSAGES in attributes(span) for span in calls)
    assert root.end_time_unix_nano >= max(span.end_time_unix_nano for span in calls)
