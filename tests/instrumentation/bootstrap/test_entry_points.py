"""`opentelemetry-instrument` and the standard variables: what is recorded, and what others get."""

from __future__ import annotations

import functools
import json
import os
import re

import pytest
from support.answers.client_forms import FORMS
from support.long import long
from support.starting.programs import Program, attributes

from playhead_core.boundaries import LEVELS
from playhead_semconv import attributes as a
from playhead_semconv import events as e

RECORD = ("python", "-m", "playhead_instrumentation", "record")
CHAT = FORMS[0]

ASKS = """
import subprocess, sys, urllib.request
urllib.request.urlopen(sys.argv[-1]).read()
subprocess.run([sys.executable, "-c", "pass", "Zagreb"], check=True)
subprocess.run("true Zagreb", shell=True, check=True)
"""

STEP = """
from opentelemetry import trace
with trace.get_tracer("mine").start_as_current_span("step", attributes={"n": 1}):
    print("done")
"""


def names(program) -> list[str]:
    return [span.name for span in program.spans()]


def exported(stdout: str) -> list[dict]:
    """The spans that the console exporter printed."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while (start := stdout.find("{", at)) >= 0:
        span, at = decoder.raw_decode(stdout, start)
        found.append(span)
    return found


def test_records_with_the_two_distributions_alone(program):
    run = program(STEP)
    done = run.instrumented()
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert done.stderr == "playhead: recording agent\n"
    assert names(run) == ["run agent.py", "step"]
    root, step = run.spans()
    assert (root.parent_span_id, step.parent_span_id) == (b"", root.span_id)
    assert attributes(step) == {"n": 1}
    starts = run.facts(e.PLAYHEAD_SPAN_START)
    assert [(fact.span_id, fact.attributes[a.PLAYHEAD_SPAN_PARENT]) for fact in starts] == [
        (root.span_id, ""),
        (step.span_id, root.span_id.hex()),
    ]
    assert starts[1].attributes["n"] == 1
    (started,) = run.facts(e.PLAYHEAD_PROCESS_START)
    assert (started.trace_id, started.span_id) == (root.trace_id, root.span_id)
    (ended,) = run.facts(e.PLAYHEAD_PROCESS_EXIT)
    assert ended.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] == 0


def test_the_run_root_describes_the_process(program):
    run = program(STEP)
    run.instrumented("python", "agent.py", "--order", "81", PYTHONHASHSEED="7")
    root = run.span("run agent.py")
    found = attributes(root)
    assert found[a.PLAYHEAD_RUN_ARGV] == ["agent.py", "--order", "81"]
    assert found[a.PLAYHEAD_RUN_CWD] == str(run.folder)
    assert found[a.PLAYHEAD_RUN_HASH_SEED] == "7"
    assert found[a.PLAYHEAD_RUN_LEVEL] == "exchanges"
    assert found[a.PLAYHEAD_RUN_AGENT] == "agent"
    assert found[a.PLAYHEAD_RUN_ID] == f"{root.trace_id.hex()}-{root.span_id.hex()}"
    assert found[a.PLAYHEAD_RUN_UNPATCHED] == []
    assert any(package.startswith("opentelemetry-sdk==") for package in found[a.PLAYHEAD_RUN_PACKAGES])


@pytest.mark.parametrize("agent", ["", "refund"])
def test_the_run_root_spells_out_what_is_no_utf_8(program, agent):
    run = program(STEP)
    done = run.instrumented("python", "agent.py", "x\udcff", PLAYHEAD_AGENT=agent)
    assert (done.stdout, done.returncode) == ("done\n", 0)
    root = run.span("invoke_agent refund" if agent else "run agent.py")
    assert attributes(root)[a.PLAYHEAD_RUN_ARGV] == ["agent.py", "x\\xff"]
    (started,) = run.facts(e.PLAYHEAD_PROCESS_START)
    assert started.attributes[a.PLAYHEAD_RUN_ARGV] == ["agent.py", b"x\xff"]


def test_a_named_agent_is_invoked(program):
    run = program(STEP)
    done = run.recorded(PLAYHEAD_AGENT="refund")
    assert done.stderr == "playhead: recording refund\n"
    root = run.span("invoke_agent refund")
    found = attributes(root)
    assert (found[a.GEN_AI_OPERATION_NAME], found[a.GEN_AI_AGENT_NAME]) == ("invoke_agent", "refund")
    assert found[a.PLAYHEAD_RUN_AGENT] == "refund"


def test_quiet_and_disabled(program):
    run = program(STEP)
    assert run.instrumented(PLAYHEAD_QUIET="1").stderr == ""
    assert names(run) == ["run agent.py", "step"]
    for variable, value in (
        ("PLAYHEAD_DISABLED", "1"),
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "playhead"),
        ("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", "*"),
    ):
        other = program(STEP)
        done = other.instrumented(**{variable: value})
        assert (done.stdout, done.stderr) == ("done\n", ""), variable
        assert other.records() == {}


@pytest.mark.parametrize(
    ("variables", "file", "said"),
    [
        (
            {"PLAYHEAD_CONTENT": "metadat"},
            "",
            "content from environment (PLAYHEAD_CONTENT) is 'metadat', not full or metadata; "
            "did you mean metadata?",
        ),
        long(
            {"PLAYHEAD_CONTENT": "Metadata"},
            "",
            "content from environment (PLAYHEAD_CONTENT) is 'Metadata', not full or metadata; "
            "did you mean metadata?",
        ),
        long(
            {"PLAYHEAD_LEVEL": "hard"},
            "",
            "level from environment (PLAYHEAD_LEVEL) is 'hard', not exchanges, causal or strict",
        ),
        (
            {"PLAYHEAD_BOUNDARIES": "+clok"},
            "",
            "boundaries: unknown name 'clok'; did you mean clock?",
        ),
        long(
            {},
            '[tool.playhead]\ncontent = "off"\n',
            "content from {file} is 'off', not full or metadata",
        ),
        ({}, "[tool.playhead]\nqiet = true\n", "unknown setting qiet in {file}; did you mean quiet?"),
        long({}, '[tool.playhead]\ncontent = "meta', "{file} is not TOML; "),
    ],
)
def test_a_setting_that_is_not_understood_stops_the_recording_and_not_the_program(
    program, variables: dict[str, str], file: str, said: str
):
    run = program(STEP)
    path = run.folder / "pyproject.toml"
    if file:
        path.write_text(file, "utf-8")
    for start in (run.instrumented, run.recorded):
        done = start(**variables)
        assert (done.returncode, done.stdout) == (0, "done\n")
        assert done.stderr.startswith(f"playhead: nothing is recorded: {said.format(file=path)}")
        assert done.stderr.count("\n") == 1
    assert run.records() == {}


def test_without_content_neither_arguments_nor_queries_are_kept(program, server):
    server.script([CHAT.reply()], repeat=True)
    run = program(ASKS)
    url = f"{server.url}/path?city=Zagreb"
    instrumented = functools.partial(run.instrumented, "python", "agent.py")
    for start, level in zip((run.recorded, instrumented, run.recorded), LEVELS, strict=True):
        done = start("--customer", "Zagreb", url, PLAYHEAD_CONTENT="metadata", PLAYHEAD_LEVEL=level)
        assert done.returncode == 0, done.stderr
    starts = run.facts(e.PLAYHEAD_PROCESS_START)
    said = [fact.attributes[a.PLAYHEAD_RUN_ARGV] for fact in starts]
    assert [words for words in said if words != ["-c"]] == [["agent.py"]] * len(LEVELS)
    assert "Zagreb" not in repr(run.records())


def test_settings_from_the_nearest_pyproject(program):
    run = program(STEP)
    (run.folder / "pyproject.toml").write_text('[tool.playhead]\nagent = "from-file"\n', "utf-8")
    assert run.recorded().stderr == "playhead: recording from-file\n"


def test_console_exporter_gets_the_same_spans(program):
    run = program(STEP)
    done = run.instrumented(OTEL_TRACES_EXPORTER="console", PLAYHEAD_QUIET="1", OTEL_SERVICE_NAME="svc")
    assert done.stderr == ""
    spans = exported(done.stdout.replace("done\n", "", 1))
    assert [span["name"] for span in spans] == ["step", "invoke_agent svc"]
    assert [span["context"]["span_id"] for span in spans] == [
        "0x" + run.span(name).span_id.hex() for name in ("step", "invoke_agent svc")
    ]
    assert spans[0]["resource"]["attributes"]["service.name"] == "svc"


SERVICES = """
from opentelemetry.sdk.resources import Resource
for own in ({}, {"service.name": "own"}):
    print(Resource.create(own).attributes["service.name"])
"""


def test_a_service_without_a_name_has_that_of_the_agent(program):
    run = program(STEP)
    done = run.instrumented(OTEL_TRACES_EXPORTER="console", PLAYHEAD_QUIET="1")
    spans = exported(done.stdout.replace("done\n", "", 1))
    assert {span["resource"]["attributes"]["service.name"] for span in spans} == {"agent"}
    assert run.services() == {"agent"}


@pytest.mark.parametrize(
    ("words", "environ", "said"),
    [
        (("python", "agent.py"), {}, ["agent", "own"]),
        long(("python", "-m", "agent"), {}, ["agent", "own"]),
        (("python", "agent.py"), {"PLAYHEAD_AGENT": "refund"}, ["refund", "own"]),
        (("python", "agent.py"), {"OTEL_SERVICE_NAME": "desk"}, ["desk", "own"]),
        long(("python", "agent.py"), {"OTEL_RESOURCE_ATTRIBUTES": "service.name=x"}, ["x", "own"]),
        long(("python", "agent.py"), {"PLAYHEAD_DISABLED": "1"}, ["unknown_service:python", "own"]),
    ],
)
def test_a_name_that_is_given_is_kept(program, words, environ, said):
    run = program(SERVICES)
    done = run.instrumented(*words, PLAYHEAD_QUIET="1", **environ)
    assert done.stdout.split() == said, done.stderr


def test_a_child_is_of_the_service_of_its_parent(program):
    run = program("import subprocess, sys; subprocess.run([sys.executable, 'other.py'], check=True)")
    (run.folder / "other.py").write_text(SERVICES, "utf-8")
    assert run.recorded(PLAYHEAD_QUIET="1").stdout.split() == ["agent", "own"]


@pytest.mark.parametrize(
    "sampler",
    [
        {"OTEL_TRACES_SAMPLER": "always_off"},
        {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"},
    ],
)
def test_at_zero_percent_others_get_nothing_and_the_record_everything(program, sampler):
    run = program(STEP)
    done = run.instrumented(OTEL_TRACES_EXPORTER="console", **sampler)
    assert done.stdout == "done\n"
    assert names(run) == ["run agent.py", "step"]
    assert attributes(run.span("step")) == {"n": 1}
    assert not run.span("step").flags & 1


def test_a_stock_exporter_that_is_not_there_stops_nothing(program):
    run = program(STEP)
    done = run.instrumented(OTEL_TRACES_EXPORTER="nowhere")
    assert done.stdout == "done\n"
    assert "playhead: OpenTelemetry could not be set up as configured: " in done.stderr
    assert names(run) == ["run agent.py", "step"]


def test_resource_and_limits_are_honoured(program):
    run = program(
        """
from opentelemetry import trace
with trace.get_tracer("mine").start_as_current_span("step") as span:
    span.set_attribute("text", "x" * 100)
    print(span.resource.attributes["team"])
"""
    )
    done = run.instrumented(
        OTEL_RESOURCE_ATTRIBUTES="team=agents", OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT="10"
    )
    assert done.stdout == "agents\n"
    assert attributes(run.span("step")) == {"text": "x" * 10}


CONFIGURATION = """
file_format: "1.1"
tracer_provider:
  processors:
    - batch:
        exporter:
          console:
  sampler:
    always_off:
"""


def test_a_configuration_file_is_the_source_and_all_is_recorded(program):
    run = program(STEP)
    (run.folder / "otel.yaml").write_text(CONFIGURATION, "utf-8")
    done = run.instrumented(OTEL_CONFIG_FILE="otel.yaml")
    assert (done.stdout, done.stderr) == ("done\n", "playhead: recording agent\n")
    assert names(run) == ["run agent.py", "step"]
    (run.folder / "otel.yaml").write_text(CONFIGURATION.replace("off", "on"), "utf-8")
    done = run.instrumented(OTEL_CONFIG_FILE="otel.yaml")
    assert [span["name"] for span in exported(done.stdout[5:])] == ["step", "run agent.py"]


RESOURCE = """
resource:
  attributes:
    - name: service.name
      value: declared
"""


@pytest.mark.parametrize("how", ["variable", "file"])
def test_the_name_of_the_service_is_that_of_the_agent(program, how: str):
    run = program(STEP)
    (run.folder / "otel.yaml").write_text(CONFIGURATION + RESOURCE, "utf-8")
    variables = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=declared"}
    done = run.instrumented(**(variables if how == "variable" else {"OTEL_CONFIG_FILE": "otel.yaml"}))
    assert (done.stdout, done.stderr) == ("done\n", "playhead: recording declared\n")
    (started,) = run.facts(e.PLAYHEAD_PROCESS_START)
    assert started.attributes[a.PLAYHEAD_RUN_AGENT] == "declared"
    assert names(run) == ["invoke_agent declared", "step"]


def test_a_script_with_a_shebang(program):
    run = program("#!/usr/bin/env python3\n" + STEP)
    os.chmod(run.folder / "agent.py", 0o755)
    done = run.instrumented("./agent.py", "--fast")
    assert (done.stdout, done.returncode) == ("done\n", 0)
    root = run.span("run agent.py")
    assert attributes(root)[a.PLAYHEAD_RUN_ARGV] == ["./agent.py", "--fast"]


def test_a_module(program):
    run = program(STEP, name="tool.py")
    done = run.instrumented("python", "-m", "tool", "x")
    assert done.stdout == "done\n"
    found = attributes(run.span("run -m tool"))
    assert (found[a.PLAYHEAD_RUN_SCRIPT], found[a.PLAYHEAD_RUN_AGENT]) == ("-m tool", "tool")


EXITS = {
    "import sys; sys.exit(3)": (3, ("SystemExit", "3"), "exit status 3"),
    "import sys; sys.exit('gone')": (1, ("SystemExit", "gone"), "gone"),
    "import sys; sys.exit()": (0, (None, None), ""),
    "exit(3)": (3, ("SystemExit", "3"), "exit status 3"),
    "raise ValueError('no order')": (1, ("ValueError", "no order"), "no order"),
    "x = = 1": (1, ("SyntaxError", "invalid syntax (agent.py, line 1)"), None),
    "pass": (0, (None, None), ""),
}


FEW = ("import sys; sys.exit('gone')", "raise ValueError('no order')")


@pytest.mark.parametrize("ending", [one if one in FEW else long(one) for one in EXITS])
def test_how_the_process_ended(program, ending):
    code, error, said = EXITS[ending]
    for start in (Program.instrumented, Program.recorded):
        run = program(f"{ending}\n" if said is None else f"{STEP}{ending}\n")
        assert start(run).returncode == code
        (ended,) = run.facts(e.PLAYHEAD_PROCESS_EXIT)
        assert ended.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] == code
        names = a.PLAYHEAD_ERROR_QUALNAME, a.PLAYHEAD_ERROR_MESSAGE
        assert tuple(ended.attributes.get(name) for name in names) == error
        root = run.span("run agent.py")  # also of a program that did nothing but fail
        assert attributes(root).get(a.ERROR_TYPE) == error[0]
        assert root.status.message == (error[1] if said is None else said)


@pytest.mark.parametrize("what", ["missing", long("unreadable")])
def test_a_script_that_cannot_be_opened_has_failed(program, what: str):
    run = program(STEP)
    name = "missing.py" if what == "missing" else "agent.py/agent.py"
    assert run.instrumented("python", name).returncode == 2
    (ended,) = run.facts(e.PLAYHEAD_PROCESS_EXIT)
    assert ended.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] == 2
    assert name in ended.attributes[a.PLAYHEAD_ERROR_MESSAGE]


def test_os_exit_leaves_the_facts(program):
    run = program(STEP + "import os; os._exit(4)\n")
    assert run.recorded().returncode == 4
    assert sorted(names(run)) == ["run agent.py", "step"]
    assert [fact.attributes[a.PLAYHEAD_SPAN_NAME] for fact in run.facts(e.PLAYHEAD_SPAN_START)] == [
        "run agent.py",
        "step",
    ]
    [ended] = run.facts(e.PLAYHEAD_PROCESS_EXIT)
    assert ended.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] == 4


def plugin(folder, name: str, group: str, value: str, source: str) -> None:
    """A distribution with one entry point, importable from ``folder``."""
    (folder / f"{name}.py").write_text(source, "utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}:{value}\n", "utf-8")


BROKEN = """
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
class Broken(BaseInstrumentor):
    def instrumentation_dependencies(self): return ()
    def _instrument(self, **kwargs): raise ZeroDivisionError("at once")
    def _uninstrument(self, **kwargs): pass
"""
LATER = """
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
class Later(BaseInstrumentor):
    def instrumentation_dependencies(self): return ()
    def _instrument(self, **kwargs): print("later")
    def _uninstrument(self, **kwargs): pass
"""


def test_an_instrumentor_that_fails_stops_no_other(program):
    run = program(STEP)
    plugin(run.folder, "aaa_broken", "opentelemetry_instrumentor", "Broken", BROKEN)
    plugin(run.folder, "zzz_later", "opentelemetry_instrumentor", "Later", LATER)
    done = run.instrumented()
    assert done.stdout == "later\ndone\n"
    assert "playhead: cannot record aaa_broken: ZeroDivisionError: at once" in done.stderr
    root = run.span("run agent.py")
    assert attributes(root)[a.PLAYHEAD_RUN_UNPATCHED] == ["aaa_broken: ZeroDivisionError: at once"]


OTHER_CONFIGURATOR = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
class Other:
    def configure(self, **kwargs):
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
        trace.set_tracer_provider(provider)
"""


def test_where_another_configurator_is_chosen_the_instrumentor_records(program):
    run = program(STEP)
    plugin(run.folder, "other", "opentelemetry_configurator", "Other", OTHER_CONFIGURATOR)
    done = run.instrumented(OTEL_PYTHON_CONFIGURATOR="other", PLAYHEAD_QUIET="1")
    assert done.stdout.startswith("done\n")
    assert [span["name"] for span in exported(done.stdout[5:])] == ["step", "run agent.py"]
    assert names(run) == ["run agent.py", "step"]


def test_what_was_patched_is_said_once_and_put_on_the_root(program):
    run = program("import openai, anthropic, httpx\n" + STEP)
    done = run.instrumented()
    (line,) = [one for one in done.stderr.splitlines() if ": recording" in one]
    assert re.fullmatch(r"playhead: recording \S+ \((.*); exchanges\)", line)
    said = line.partition("(")[2].partition(";")[0].split(", ")
    assert {"openai", "anthropic", "httpx", "httpx2"} <= set(said)
    root = run.span("run agent.py")
    assert {"openai", "anthropic", "http.httpx"} <= set(attributes(root)[a.PLAYHEAD_RUN_PATCHED])


def test_the_instrumentors_that_are_active_stand_on_the_tape(program):
    run = program(STEP)
    plugin(run.folder, "another", "opentelemetry_instrumentor", "Another", ANOTHER)
    path = {"PYTHONPATH": str(run.folder), "PLAYHEAD_QUIET": "1"}
    record = (*RECORD, "agent.py")
    for words, asked, expected in (
        (("opentelemetry-instrument", "python", "agent.py"), "", ["another"]),
        (record, "", []),
        (record, "all", ["another"]),
        (record, "another,absent", ["another"]),
    ):
        before = len(run.facts(e.PLAYHEAD_PROCESS_START))
        done = run.run(*words, **path, PLAYHEAD_INSTRUMENTORS=asked)
        assert (done.returncode, done.stderr) == (0, "loaded\n" if expected else "")
        started = run.facts(e.PLAYHEAD_PROCESS_START)[before:]
        assert [fact.attributes.get(a.PLAYHEAD_RUN_INSTRUMENTORS, []) for fact in started] == [expected]


ANOTHER = """
import sys
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

class Another(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return ()

    def _instrument(self, **kwargs):
        sys.stderr.write("loaded\\n")

    def _uninstrument(self, **kwargs):
        pass
"""
