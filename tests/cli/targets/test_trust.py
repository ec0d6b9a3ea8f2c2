"""A program that somebody else has recorded is shown, and runs when it is trusted only."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade

from playhead_cli.targets import trust
from playhead_core.rerun.plans import Plan
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay import Environment, Run
from playhead_replay.forks.ready_fork import Fork
from playhead_replay.run.command import Command
from playhead_replay.runner.process_start import child_environment, interpreter_for
from playhead_replay.tape_files.tape_file import write_tape_file
from playhead_semconv import attributes as a

ENVIRONMENT = [
    "TZ=UTC",
    "OPENAI_BASE_URL=http://evil.example",
    "HTTPS_PROXY=http://evil.example",
    "PYTHONPATH=/tmp/evil",
    "PYTHONSTARTUP=/tmp/evil.py",
    "LD_PRELOAD=/tmp/evil.so",
    "GIT_SSH_COMMAND=evil",
    "PYTHONUTF8=1",
]


def made(folder: Path) -> HandMade:
    run = HandMade().start(
        "-c",
        str(folder),
        **{
            a.PLAYHEAD_RUN_ARGV: ["-c"],
            a.PLAYHEAD_RUN_SOURCE: f"open({str(folder / 'ran')!r}, 'w')\x1b[2J",
            a.PLAYHEAD_RUN_INTERPRETER: "/tmp/evil-python",
            a.PLAYHEAD_RUN_ENVIRONMENT: ENVIRONMENT,
        },
    )
    run.chat()
    run.exit()
    return run


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    run = made(tmp_path)
    path = tmp_path / "foreign.tape"
    write_tape_file(path, MemoryTape(run.facts), [span.otlp for span in run.spans])
    return path


@pytest.mark.parametrize("command", ["replay", "fork", "resume"])
@pytest.mark.parametrize("imported", [False, True])
def test_what_would_run_is_shown_and_refused(
    playhead: CommandLine, tape: Path, tmp_path: Path, command: str, imported: bool
):
    target = str(tape)
    if imported:
        playhead("import", str(tape))
        target = "refund-1"
        assert json.loads(playhead("ls", "--json").out)["runs"][0]["marks"] == ["imported"]
    if command == "resume":
        return  # one that has come to its end is refused before
    done = playhead(command, target, "--cwd", str(tmp_path))
    assert done.status == 2
    said = done.err
    assert "error[usage]: " in said and "was not recorded here" in said and "--trust" in said
    assert f"command: python -c 'open('\"'\"'{tmp_path}/ran" in said and "\x1b" not in said
    live = command == "fork"
    allowed = "TZ, PYTHONUTF8" if live else "TZ, OPENAI_BASE_URL, HTTPS_PROXY, PYTHONUTF8"
    assert f"playhead: environment: {allowed}\n" in said
    assert "LD_PRELOAD" in said.partition("not passed on: ")[2]
    assert not (tmp_path / "ran").exists()


def test_words_that_are_no_utf_8_are_spelt_out_to_whoever_is_to_trust():
    run = Run.of_tape(HandMade().start(**{a.PLAYHEAD_RUN_ARGV: ["agent.py", b"x\xff"]}).tape(), name="a")
    assert trust.told(run, live=False)[0] == "command: python agent.py 'x\\xff'"


def test_what_is_trusted_once_is_known(playhead: CommandLine, tape: Path, tmp_path: Path):
    done = playhead("replay", str(tape), "--cwd", str(tmp_path), "--trust")
    assert "was not recorded here" not in done.err
    again = playhead("replay", str(tape), "--cwd", str(tmp_path))
    assert "was not recorded here" not in again.err
    tape.write_bytes(tape.read_bytes() + b"x")
    assert not trust.is_known(playhead.data_dir, tape)


def test_what_was_written_here_is_not_asked_for(playhead: CommandLine, tmp_path: Path):
    store_run(playhead.data_dir, made(tmp_path))
    path = tmp_path / "own.tape"
    playhead("export", "-o", str(path))
    for target in (str(path), "last"):
        assert "was not recorded here" not in playhead("replay", target, "--cwd", str(tmp_path)).err
    assert (playhead.data_dir / trust.KNOWN).stat().st_mode & 0o777 == 0o600
    playhead("import", str(path))
    assert json.loads(playhead("ls", "--json").out)["runs"][0]["marks"] == []


def test_what_was_imported_stays_foreign_by_way_of_an_export(
    playhead: CommandLine, tape: Path, tmp_path: Path
):
    playhead("import", str(tape))
    playhead("export", "-o", str(tmp_path / "again.tape"))
    assert "was not recorded here" in playhead("replay", str(tmp_path / "again.tape")).err
    playhead("gc", "--unmark", "last", "imported")
    assert "was not recorded here" not in playhead("replay", "last", "--cwd", str(tmp_path)).err


@pytest.mark.parametrize("answer", [True, False])
def test_somebody_at_a_terminal_is_asked(
    playhead: CommandLine, tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
):
    asked: list[str] = []

    def confirm(text: str, **how: Any) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr(trust.click, "confirm", confirm)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    done = playhead("replay", str(tape), "--cwd", str(tmp_path))
    assert len(asked) == 1 and asked[0].endswith(
        "was not recorded here, and this runs its program. Run it?"
    )
    assert ("you do not trust it" in done.err) is not answer


@pytest.mark.parametrize("live", [True, False])
def test_neither_interpreter_nor_code_nor_addresses_come_from_it(tmp_path: Path, live: bool):
    command = Command.of_tape(MemoryTape(made(tmp_path).facts)).from_elsewhere(live=live)
    assert interpreter_for(command) == sys.executable
    child = child_environment(command, {"PATH": "/bin", "LANG": "C"})
    assert not {"PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "GIT_SSH_COMMAND"} & set(child)
    assert ("OPENAI_BASE_URL" in child, "HTTPS_PROXY" in child) == (not live, not live)
    assert child["TZ"] == "UTC"


def test_no_tape_sets_what_a_recording_does_not_keep(tmp_path: Path):
    command = Command.of_tape(MemoryTape(made(tmp_path).facts))
    child = child_environment(command, {"PATH": "/bin"})
    assert not {"LD_PRELOAD", "GIT_SSH_COMMAND"} & set(child)
    assert child["PYTHONPATH"] == "/tmp/evil"  # an own recording may need it


def test_the_application_of_a_service_is_shown():
    served = HandMade().start("-c")
    details = {
        a.PLAYHEAD_INBOUND_APPLICATION: "app:create_app('x')",
        a.PLAYHEAD_INBOUND_FOLDER: "/tmp/evil",
    }
    details[a.PLAYHEAD_EXCHANGE_DIRECTION] = "in"
    served.exchange("GET /", kind="inbound", **details)
    told = trust.told(Run.of_tape(served.tape(), name="a"), live=False)
    assert "application: app:create_app('x'), from: /tmp/evil" in told


def test_a_fork_that_is_trusted_starts_so(tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text("")
    run = HandMade().start(
        "agent.py",
        str(tmp_path),
        **{a.PLAYHEAD_RUN_INTERPRETER: "/bin/sh", a.PLAYHEAD_RUN_ENVIRONMENT: ENVIRONMENT},
    )
    around = Environment(folder=tmp_path, environ={"OPENAI_API_KEY": "mine"}, foreign=True)
    ready = Fork(MemoryTape(run.facts), Plan("fork", "a-b")).prepare(tmp_path, around)
    assert ready.words[0] == sys.executable
    assert "evil" not in str(ready.environ)
