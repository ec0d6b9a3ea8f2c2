"""The short form, without ``opentelemetry-instrument``: the same, children included."""

from __future__ import annotations

from support.answers.client_forms import FORMS
from support.starting.programs import attributes

from playhead_semconv import attributes as a

RECORD = ("python", "-m", "playhead_instrumentation", "record")
CHILD = """
import sys
from opentelemetry import trace
trace.get_tracer("c").start_span("in child").end()
print("child", [name for name in ("usual",) if name in sys.modules])
"""


def test_a_script_and_its_children(program):
    run = program(
        """
import multiprocessing, subprocess, sys
from opentelemetry import trace

def work():
    trace.get_tracer("w").start_span("work").end()

if __name__ == "__main__":
    subprocess.run([sys.executable, "child.py"], check=True)
    worker = multiprocessing.get_context("spawn").Process(target=work)
    worker.start()
    worker.join()
    print(sys.argv, worker.exitcode)
"""
    )
    (run.folder / "child.py").write_text(CHILD, "utf-8")
    done = run.recorded("--order", "81", PLAYHEAD_QUIET="1")
    assert done.stdout == "child []\n['agent.py', '--order', '81'] 0\n"
    assert done.stderr == ""
    spans = run.spans()
    assert len({span.trace_id for span in spans}) == 1
    assert {"run agent.py", "run child.py", "in child", "work"} <= {span.name for span in spans}


def test_a_sitecustomize_of_the_users_own_is_run_in_children_too(program):
    run = program("import subprocess, sys; subprocess.run([sys.executable, 'child.py'], check=True)")
    (run.folder / "child.py").write_text(CHILD, "utf-8")
    own = run.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import usual\n", "utf-8")
    (own / "usual.py").write_text("", "utf-8")
    done = run.run(*RECORD, "agent.py", PYTHONPATH=str(own))
    assert done.stdout == "child ['usual']\n"
    assert run.span("in child")


def test_a_child_without_playhead_is_left_alone(program):
    run = program(
        "import subprocess, sys; subprocess.run([sys.executable, '-S', 'child.py'], check=True)"
    )
    (run.folder / "child.py").write_text("print('child')\n", "utf-8")
    done = run.recorded()
    assert (done.stdout, done.stderr) == ("child\n", "playhead: recording agent\n")
    bare = program(
        "import os, subprocess, sys\n"
        "env = {**os.environ, 'PYTHONPATH': os.environ['PYTHONPATH']}\n"
        "code = 'import sys; print(sys.flags.no_user_site)'\n"
        "subprocess.run([sys._base_executable, '-s', '-c', code], env=env, check=True)\n"
    )
    done = bare.recorded()
    assert (done.stdout, done.stderr) == ("1\n", "playhead: recording agent\n")


def test_stock_exporters_and_calls(program, server):
    server.script([FORMS[0].reply()])
    run = program(
        """
import openai, sys
openai.OpenAI(base_url=sys.argv[1]).chat.completions.create(
    model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
"""
    )
    done = run.run(*RECORD, "agent.py", server.openai_url, OTEL_TRACES_EXPORTER="console")
    assert [line.strip() for line in done.stdout.splitlines() if '"name"' in line][-1] == (
        '"name": "run agent.py",'
    )
    assert attributes(run.span("chat gpt-4o"))[a.GEN_AI_RESPONSE_FINISH_REASONS] == ["stop"]


NATIVE = """
import anthropic, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
options = {"open_telemetry": {"tracer_provider": provider}} if sys.argv[2] == "own" else {}
anthropic.Anthropic(base_url=sys.argv[1], **options).messages.create(
    model="claude-sonnet-5", max_tokens=64, messages=[{"role": "user", "content": "Hello"}])
print([span.name for span in exporter.get_finished_spans()])
"""


def test_the_native_spans_of_anthropic_are_off_unless_asked_for(program, server):
    form = next(form for form in FORMS if form.name == "messages create")
    server.script([form.reply()], repeat=True)
    run = program(NATIVE)
    assert run.recorded(server.url, "none").stdout == "[]\n"
    assert [span.name for span in run.spans()] == ["run agent.py", "chat claude-sonnet-5", "POST"]
    other = program(NATIVE)
    done = other.recorded(server.url, "own")
    assert done.stdout != "[]\n", done.stderr
