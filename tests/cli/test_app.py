import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.starting.cli import CommandLine, Done, store_run
from support.tapes.handmade import HandMade

from playhead_cli import app
from playhead_cli.commands.inspect import ls

HEAVY = ("grpc", "apsw", "textual", "uvicorn", "starlette", "google.protobuf", "rich")


def test_help_imports_nothing_heavy():
    probe = (
        "import sys\n"
        "from playhead_cli.app import run\n"
        "status = run(['--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], status, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.stderr == "[] 0\n"
    assert "record" in done.stdout


def test_help_lists_every_command_and_each_can_be_loaded():
    done = subprocess.run(
        [sys.executable, "-m", "playhead_cli", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    for name, text in app.COMMANDS.items():
        command = app.playhead.get_command(None, name)  # type: ignore[arg-type]
        assert (name in listed) == (name not in app.ALIASES)
        assert command is not None
        assert command.short_help == text


@pytest.mark.parametrize("group", app.GROUPS)
def test_a_group_lists_its_commands_which_the_root_accepts_too(playhead: CommandLine, group: str):
    assert app.run([group, "--help"]) == 0
    listed = [line.split()[0] for line in playhead.captured().splitlines() if line.startswith("  ")]
    for name in app.GROUPS[group]:
        assert name in listed
        assert app.run([group, name, "--help"]) == 0
        grouped = playhead.captured()
        assert app.run([name, "--help"]) == 0
        short = playhead.captured()
        usage, _, rest = short.partition("\n")
        assert usage == grouped.partition("\n")[0].replace(f"{group} {name}", name, 1)
        assert grouped.partition("\n")[2] == rest


def run_help(playhead: CommandLine, name: str) -> Done:
    # Without the options that the fixture adds: they would stand among the agent's words of `record`.
    status = app.run([name, "--help"])
    return Done(status, playhead.captured(), "")


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_has_help_and_the_common_options_which_only_the_root_lists(
    playhead: CommandLine, name: str
):
    done = run_help(playhead, name)
    assert done.status == 0
    command = app.playhead.get_command(None, name)  # type: ignore[arg-type]
    accepted = {option for param in command.params for option in param.opts}
    listed = app.run(["--help"]), playhead.captured()
    for option in ("--json", "--color", "--config", "--no-config", "--data-dir", "--verbose"):
        assert option in accepted
        assert option in listed[1]
    assert "--no-config" not in done.out
    assert "Global options: playhead --help" in done.out


@pytest.mark.parametrize("words", [(), ("golden",), ("token",), ("control",), ("store",)])
def test_nothing_asked_for_is_answered_with_help(playhead: CommandLine, words: tuple[str, ...]):
    assert app.run([*words]) == 0
    said = playhead.captured()
    assert said.startswith(f"Usage: playhead {' '.join(words)}".strip()) and "--help" in said


def test_n_is_how_many_in_every_command():
    for name in app.COMMANDS:
        command = app.playhead.get_command(click.Context(app.playhead), name)
        assert command is not None
        own = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
        for param in (param for one in own for param in one.params):
            if "-n" in param.opts:
                assert param.name == "limit" and "--limit" in param.opts, name


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (("ls", "--jsn"), "No such option '--jsn'", "playhead ls --help"),
        (("shw",), "unknown command shw, did you mean show?", "playhead --help"),
        (("store", "bakup"), "unknown command bakup, did you mean backup?", "playhead store --help"),
        (("ls", "-n", "x"), "Invalid value for '-n' / '--limit'", "playhead ls --help"),
    ],
)
def test_a_mistake_in_the_command_is_said_in_one_form(
    playhead: CommandLine, words: tuple[str, ...], said: str, hint: str
):
    done = playhead(*words)
    assert done.status == 2
    assert done.out == ""
    first, last = done.err.splitlines()
    assert first.startswith(f"error[usage]: {said}")
    assert last == f"hint: {hint}"


def test_with_json_an_error_is_an_object_on_stderr(playhead: CommandLine):
    done = playhead("show", "nightly-4", "--json")
    assert done.status == 2
    found = json.loads(done.err)
    assert found["schema_version"] == 1
    assert found["error"]["code"] == "run-unknown"
    assert set(found["error"]) == {"code", "what", "cause", "hint"}


def test_a_defect_has_a_traceback_only_with_v(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch, refund_1: str
):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(ls, "table", broken)
    quiet = playhead("ls")
    assert quiet.err == "error[error]: ZeroDivisionError: oh\nhint: -v shows where\n"
    assert quiet.status == 1
    loud = playhead("ls", "-v")
    assert "Traceback" in loud.err
    assert loud.err.endswith(quiet.err)


def test_control_c_ends_it_by_the_signal(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch, refund_1: str
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ls, "table", interrupted)
    done = playhead("ls")
    assert (done.status, done.err.strip()) == (-signal.SIGINT, "")


def test_a_reader_that_goes_away_ends_it_quietly(playhead: CommandLine, refund_1: str):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "playhead_cli", "ls", "--data-dir", str(playhead.data_dir)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_text_that_the_output_cannot_encode_is_escaped(tmp_path: Path, encoding: str):
    made = HandMade().start()
    made.chat(json.dumps({"messages": [{"role": "user", "content": "주문 🎉 hello"}]}).encode())
    made.exit()
    name = store_run(tmp_path, made)

    def shown(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "playhead_cli", *words, "--data-dir", str(tmp_path)],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode(encoding)

    escaped = "주문 🎉" if encoding == "utf-8" else r"\uc8fc\ubb38 \ud83c\udf89"
    assert f"{escaped} hello" in shown("show", f"{name}:1")
    printed = json.loads(shown("show", f"{name}:1", "--json"))
    assert "주문 🎉 hello" in json.dumps(printed, ensure_ascii=False)


def test_options_before_and_behind_the_command_count(playhead: CommandLine, refund_1: str):
    for words in (("--json", "ls"), ("ls", "--json")):
        assert json.loads(playhead(*words).out)["runs"][0]["name"] == refund_1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(playhead: CommandLine, shell: str):
    done = playhead("completion", shell)
    assert done.status == 0
    assert "_PLAYHEAD_COMPLETE" in done.out
    assert playhead("completion", "tcsh").status == 2


def test_memory_of_the_command_itself_is_not_traced():
    words = "import tracemalloc, playhead_cli\n"
    words += "try: playhead_cli.main(['--version'])\nfinally: print(tracemalloc.is_tracing())"
    environ = {**os.environ, "PYTHONTRACEMALLOC": "1"}
    done = subprocess.run([sys.executable, "-c", words], env=environ, capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["False"], done.stderr
