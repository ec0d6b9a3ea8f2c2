import os
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from support.tapes.handmade import HandMade
from support.tapes.stage import Stage

from playhead_core.errors import ReplayFailed, ScriptChanged, TapeGap, TapeMissing, UsageError
from playhead_core.facts import Content
from playhead_core.rerun.plans import Plan
from playhead_replay import Environment, Rules, Run, read_tape_file
from playhead_replay.forks.cut_tape import CutTape
from playhead_replay.forks.ready_fork import Fork
from playhead_replay.run.command import Command
from playhead_replay.runner.child_processes import name_of
from playhead_replay.runner.isolation import enforceable
from playhead_replay.runner.process_start import STAND_IN, child_environment, interpreter_for
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_recorded_command_is_started_with_tape_and_origin(stage: Stage):
    done = stage.replay()
    words = stage.seen["words"]
    assert words[:3] == ["-m", "playhead_instrumentation", "replay"]
    assert words[words.index("--") + 1 :] == [str(stage.script), "--order", "81"]
    assert words[words.index("--origin") + 1] == f"{'4f2a' + '1' * 28}-00000000000000a0"
    assert stage.seen["cwd"] == str(stage.folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"said on stdout\n", b"said on stderr\n")
    assert done.report.verdict == "identical"
    assert done.report.run == "refund-7"


def test_words_that_are_no_utf_8_come_back_and_are_spelt_out_for_people(stage: Stage):
    made = HandMade()
    given = {a.PLAYHEAD_RUN_INTERPRETER: str(stage.python), a.PLAYHEAD_RUN_ARGV: ["agent.py", b"x\xff"]}
    run = stage.run(made.start("agent.py", str(stage.folder), **given).exit(0))
    stage.replay(run=run)
    assert stage.seen["words"][-2:] == ["agent.py", "x\udcff"]
    plan = Plan("fork", "a-b")
    around = Environment(folder=stage.folder, environ=stage.environ)
    ready = Fork(run.tape, plan).prepare(stage.folder, around)
    assert ready.words[-2:] == ["agent.py", "x\udcff"]
    assert str(run.command) == "agent.py 'x\\xff'"
    assert name_of(run.command) == "agent.py x\\xff"


def test_a_fork_says_which_modules_have_changed(stage: Stage):
    module = stage.folder / "policy.py"
    module.write_text("LIMIT = 1\n", "utf-8")
    given = {
        a.PLAYHEAD_RUN_INTERPRETER: str(stage.python),
        a.PLAYHEAD_RUN_MODULES: [f"{module}={'0' * 32}"],
    }
    run = stage.run(HandMade().start(stage.script, str(stage.folder), **given).exit(0))
    around = Environment(folder=stage.folder, environ=stage.environ)
    cut = CutTape(run.tape, 1 << 20)
    (line,) = Fork(cut, Plan("resume", "a-b")).prepare(stage.folder, around).different
    assert line.startswith(f"{module} has changed")


def file_read(name: str, data: bytes, **attributes: Any) -> dict[str, Any]:
    at = {a.PLAYHEAD_READ_KIND: f"file/open {name}", a.PLAYHEAD_FILE_MODE: 0o100644, **attributes}
    return {"attributes": at, "body": Content.of(data)}


def test_a_resume_and_a_replay_name_what_is_different_around_the_program(stage: Stage):
    stage.script.write_text("import os\nprint(os.environ['REGION'], os.getenv('TOOLS_URL'))\n", "utf-8")
    for name in ("same", "other", "masked", "written"):
        (stage.folder / f"{name}.json").write_bytes(name.encode())
    recorded = ["A_MODEL=one", "B_MODEL=same", "OPENAI_API_KEY=", "REDIS_URL=redis://:[redacted]@a/"]
    made = HandMade().start(
        stage.script,
        "/recorded/elsewhere",
        **{a.PLAYHEAD_RUN_INTERPRETER: str(stage.python), a.PLAYHEAD_RUN_ENVIRONMENT: recorded},
    )
    made.fact(e.PLAYHEAD_READ, **file_read("./same.json", b"same"))
    made.fact(e.PLAYHEAD_READ, **file_read("./other.json", b"before"))
    made.fact(e.PLAYHEAD_READ, **file_read("./gone.json", b""))
    made.fact(
        e.PLAYHEAD_READ, **file_read("./masked.json", b"[redacted]", **{a.PLAYHEAD_REDACTED_COUNT: 1})
    )
    made.fact(e.PLAYHEAD_READ, **file_read("./written.json", b"before"))
    written = {a.PLAYHEAD_EFFECT_KIND: "file.write", a.PLAYHEAD_EFFECT_TARGET: "./written.json"}
    made.fact(e.PLAYHEAD_EFFECT, attributes=written, body=Content.of(b"after"))
    run = stage.run(made.exit(0))
    stage.environ |= {
        "A_MODEL": "two",
        "B_MODEL": "same",
        "OPENAI_API_KEY": "sk-real",
        "REDIS_URL": "redis://:secret@a/",
        "TOOLS_URL": "http://me:secret@b/",
        "PYTEST_VERSION": "1",
    }
    both = [
        f"recorded in /recorded/elsewhere, now in {stage.folder}",
        "A_MODEL has another value here: the program gets the recorded 'one'",
        "TOOLS_URL was not set in the recording, but is set here: the program does not get it",
    ]
    around = Environment(folder=stage.folder, environ=stage.environ)
    cut = CutTape(run.tape, 1 << 20)
    assert Fork(cut, Plan("resume", "a-b")).prepare(stage.folder, around).different == [
        *both,
        "the program reads REGION: not on the tape, so the local values are used",
        f"{stage.folder}/other.json has changed since the run read it",
        f"{stage.folder}/gone.json does not exist here, but the run has read it",
    ]
    notes = stage.replay(run, around, Rules(force=True, repeat_effects=True)).report.notes
    assert [note for note in notes if note in both] == both


def test_a_variable_that_a_foreign_tape_may_not_set_is_named(stage: Stage):
    recorded = ["PYTHONSTARTUP=evil.py", "TOOLS_URL=http://there"]
    made = HandMade().start(stage.script, str(stage.folder), **{a.PLAYHEAD_RUN_ENVIRONMENT: recorded})
    around = Environment(folder=stage.folder, environ={"TOOLS_URL": "http://here"}, foreign=True)
    fork = Fork(stage.run(made.exit(0)).tape, Plan("resume", "a-b"))
    assert fork.prepare(stage.folder, around).different == [
        "PYTHONSTARTUP was 'evil.py', now not set",
        "TOOLS_URL was 'http://there', now another",
    ]


def test_the_programs_environment_is_that_of_the_record(stage: Stage):
    stage.environ |= {
        "PLAYHEAD_ENDPOINT": "http://x",
        "OTEL_TRACES_EXPORTER": "otlp",
        "TRACEPARENT": "00-1-1-01",
        "OPENAI_API_KEY": "sk-real",
        "HOME_OF": "mine",
    }
    made = HandMade()
    made.start(
        stage.script,
        str(stage.folder),
        **{
            a.PLAYHEAD_RUN_INTERPRETER: str(stage.python),
            a.PLAYHEAD_RUN_HASH_SEED: "17",
            a.PLAYHEAD_RUN_ENVIRONMENT: ["OPENAI_API_KEY=", "OPENAI_BASE_URL=http://provider/v1"],
        },
    )
    stage.replay(run=stage.run(made.exit(0)))
    environ = stage.seen["environ"]
    assert environ["PYTHONHASHSEED"] == "17"
    assert environ["OPENAI_API_KEY"] == STAND_IN
    assert environ["OPENAI_BASE_URL"] == "http://provider/v1"
    assert environ["HOME_OF"] == "mine"
    assert not {"PLAYHEAD_ENDPOINT", "OTEL_TRACES_EXPORTER", "TRACEPARENT", "ANTHROPIC_API_KEY"} & set(
        environ
    )


def test_variables_of_the_run_are_restored_and_what_started_the_recording_is_not():
    recorded = {
        "OPENAI_API_KEY": "",
        "PYTHONPATH": os.pathsep.join(
            (
                "/lib/playhead_instrumentation/bootstrap/site",
                "/lib/opentelemetry/instrumentation/auto_instrumentation",
                "/agent/lib",
            )
        ),
    }
    command = Command("agent.py", (), "", "", hash_seed="random", environment=recorded)
    now = {"PATH": "/bin", "OPENAI_BASE_URL": "http://other", "PYTHONPATH": "/mine", "TZ": "UTC"}
    assert child_environment(command, now) == {
        "PATH": "/bin",
        "OPENAI_API_KEY": STAND_IN,
        "PYTHONPATH": "/agent/lib",
        "PYTHONHASHSEED": "0",
    }


def test_an_address_without_its_password_is_still_an_address():
    recorded = {
        "REDIS_URL": "redis://:[redacted]@cache:6379/0",
        "ORDERS_URL": "http://me:[redacted]@shop/",
    }
    environ = child_environment(Command("agent.py", (), "", "", environment=recorded), {})
    assert urlsplit(environ["REDIS_URL"]).password == STAND_IN
    assert environ["ORDERS_URL"] == f"http://me:{STAND_IN}@shop/"


def test_a_run_without_content_is_refused(stage: Stage):
    made = stage.made(HandMade())
    made.facts = [
        msgspec.structs.replace(fact, body=Content(b"", fact.body.size))
        if fact.body is not None and not fact.body.digest
        else fact
        for fact in made.facts
    ]
    with pytest.raises(TapeMissing, match="it was recorded without content") as raised:
        stage.replay(run=stage.run(made))
    assert raised.value.cause == "main#0 has no bytes"


def test_a_program_that_was_no_file_is_refused(stage: Stage):
    made = HandMade()
    made.start("-c", str(stage.folder), **{a.PLAYHEAD_RUN_INTERPRETER: str(stage.python)})
    with pytest.raises(ScriptChanged, match="the program was not a file"):
        stage.replay(run=stage.run(made.exit(0)))


def test_keys_have_stand_ins_where_the_tape_does_not_tell():
    environ = child_environment(Command("agent.py", (), "", ""), {"OPENAI_API_KEY": "sk-real"})
    assert environ == {
        "OPENAI_API_KEY": STAND_IN,
        "ANTHROPIC_API_KEY": STAND_IN,
        "PYTHONHASHSEED": "0",
    }


def test_the_kernel_refuses_the_network(stage: Stage):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stage.environ["PORT"] = str(listener.getsockname()[1])
        done = stage.replay()
    assert done.report.network == ("kernel" if "network" in enforceable() else "process")
    expected = {"kernel": "OSError", "process": "reached"}[done.report.network]
    assert stage.seen["contact"] == expected


def test_another_folder_and_interpreter_may_be_named(stage: Stage, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "agent.py").write_bytes(stage.script.read_bytes())
    made = HandMade()
    made.start("agent.py", "/not/there", **{a.PLAYHEAD_RUN_INTERPRETER: "/not/there/python"})
    run = stage.run(made.exit(0))
    with pytest.raises(UsageError, match="the folder of the run does not exist: /not/there"):
        stage.replay(run=run)
    stage.replay(run=run, around=Environment(str(stage.python), elsewhere))
    assert stage.seen["cwd"] == str(elsewhere)
    assert interpreter_for(run.command) == sys.executable
    with pytest.raises(UsageError, match="no interpreter /not/there/python"):
        stage.replay(run=run, around=Environment("/not/there/python", elsewhere))


def test_a_changed_script_is_refused_unless_forced(stage: Stage):
    run = stage.run(_digested(stage))
    stage.script.write_text("print('changed')\n")
    with pytest.raises(ScriptChanged) as raised:
        stage.replay(run=run)
    assert raised.value.what == "agent.py differs from the tape's digest"
    assert not stage.seen
    assert stage.replay(run=run, rules=Rules(force=True)).report.verdict == "blocked"
    stage.script.unlink()
    with pytest.raises(ScriptChanged, match="is not in"):
        stage.replay(run=run)


def _digested(stage: Stage) -> HandMade:
    made = HandMade()
    made.start(stage.script, str(stage.folder), **{a.PLAYHEAD_RUN_INTERPRETER: str(stage.python)})
    return made.exit(0)


def test_a_tape_with_a_gap_is_refused(stage: Stage):
    tape = stage.made(HandMade()).tape(without=(5, 6))
    with pytest.raises(TapeGap) as raised:
        stage.replay(run=Run.of_tape(tape, name="refund-7"))
    assert raised.value.what == "refund-7 cannot be replayed: 2 facts missing: 5 to 6"
    assert raised.value.hint == "look for undelivered facts: playhead spool push"


def test_a_run_without_a_tape_is_refused(stage: Stage):
    with pytest.raises(TapeMissing, match="has no tape"):
        stage.replay(run=Run.of_tape(HandMade().tape(), name="foreign-1"))


def test_a_program_that_cannot_be_started_again_is_an_error(stage: Stage):
    stage.environ |= {"NOW_TAPE": "", "STATUS": "1"}
    with pytest.raises(ReplayFailed) as raised:
        stage.replay()
    assert raised.value.what == "refund-7 could not be started again (exit 1)"
    assert raised.value.cause == "said on stderr"


def test_the_tape_of_the_replay_may_be_kept(stage: Stage, tmp_path: Path):
    done = stage.replay(keep=tmp_path / "now.tape")
    assert list(read_tape_file(tmp_path / "now.tape").tape.facts()) == list(done.now.facts())


def test_a_replay_that_was_killed_is_compared_as_far_as_it_came(stage: Stage):
    prepared = Path(stage.environ["NOW_TAPE"])
    prepared.write_bytes(prepared.read_bytes()[:-20])  # into the exit fact
    report = stage.replay().report
    assert report.verdict == "diverged"
    assert report.notes[-1].startswith("now.tape ends at byte")
    assert os.fspath(stage.folder) not in "\n".join(report.lines())
