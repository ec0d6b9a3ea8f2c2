"""What a shell offers: commands, runs, files, agents, fields of queries; fast, and harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import HandMade

from playhead_cli.app import COMMANDS
from playhead_cli.completion import stored_words
from playhead_cli.completion.arguments import FIELDS, VALUES
from playhead_cli.targets.run_argument import SUFFIX
from playhead_receiver.queries.language import MODES, STATUSES, read_language
from playhead_receiver.storage import open_store
from playhead_receiver.storage.api.retention import MARKS
from playhead_receiver.storage.sql.reading.run_words import WORDS
from playhead_replay.tape_files import tape_file

HEAVY = (
    *("grpc", "apsw", "textual", "rich", "google", "opentelemetry", "fastapi", "pydantic", "psycopg"),
    *("blake3", "backports", "urllib3", "jinja2", "asyncio", "jsonschema"),
    *("playhead_replay", "playhead_receiver.storage", "playhead_exporter"),
)
"""Modules that a shell must not wait for."""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Two runs of `refund`, one of `helper`, one of an agent with a hostile name."""
    folder = tmp_path / "data"
    store_run(folder, refund())
    store_run(folder, refund(b"d" * 16, b"e" * 16))
    for number, agent in enumerate(("helper", "$(touch x); x *"), 1):
        made = HandMade(bytes([number]) * 16, bytes([number]) * 16)
        made.start(**{"playhead.run.agent": agent}).chat()
        store_run(folder, made.exit(0))
    store = open_store(folder)
    store.sum_up()  # as a receiver does
    store.close()
    return folder


IMPORTED = """
import atexit, sys
files = lambda: [name for name, one in sys.modules.items() if vars(one).get("__file__")]
atexit.register(lambda: print(*files(), sep="\\n", file=sys.stderr))
from playhead_cli import main
main()
"""
"""Completes, and prints the modules that were read from files."""


def offered(data_dir: Path, line: str) -> list[str]:
    """What is offered at the end of a line."""
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")},
        "PLAYHEAD_DATA_DIR": str(data_dir),
        "_PLAYHEAD_COMPLETE": "bash_complete",
        "COMP_LINE": line,
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        env=environ,
        cwd=data_dir.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = done.stderr.splitlines()
    assert "playhead_cli.app" in imported
    assert not [one for one in imported for heavy in HEAVY if f"{one}.".startswith(f"{heavy}.")]
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one.startswith("plain,")]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("playhead sh", ["show"]),
        ("playhead stor", ["store"]),
        ("playhead store ba", ["backup"]),
        ("playhead control step ref", ["refund-2", "refund-1"]),
        ("playhead step ref", ["refund-2", "refund-1"]),
        ("playhead show ref", ["refund-2", "refund-1"]),
        ("playhead show la", ["last"]),
        ("playhead show refund-1:", ["start", "error", "end"]),
        ("playhead fork refund-1:e", ["error", "end"]),
        ("playhead ls --agent ", ["helper", "refund"]),
        ("playhead ls ag", ["agent:", "agent_type:"]),
        ("playhead ls agent:re", ["refund"]),
        ("playhead ls errors:yes status:f", ["failure"]),
        ("playhead stats tool:", ["refund", "search"]),
        ("playhead tail agent:h", ["helper"]),
        ("playhead ls --sta", ["--status"]),
        ("playhead ls --status ru", ["running"]),
        ("playhead golden r", ["rm"]),
        ("playhead golden rm te", ["test_x/two"]),
        ("playhead nothing x", []),
    ],
)
def test_what_is_begun_is_finished(data_dir: Path, line: str, wanted: list[str]):
    goldens = data_dir.parent / "tests" / "goldens" / "test_x"
    goldens.mkdir(parents=True)
    (goldens / "two.tape").write_text("")
    assert offered(data_dir, line) == wanted


FEW = ("browse", "replay", "show")
"""Commands with the most imports, which the short suite asks."""


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=() if one in FEW else pytest.mark.acceptance) for one in COMMANDS],
)
def test_no_command_makes_a_shell_wait(data_dir: Path, command: str):
    offered(data_dir, f"playhead {command} -")


def test_bash_puts_in_what_is_offered(data_dir: Path, tmp_path: Path):
    script = tmp_path / "try.sh"
    script.write_text(
        f"""
        playhead() {{ {sys.executable} -m playhead_cli "$@"; }}
        env() {{ while [[ $1 == *=* ]]; do export "$1"; shift; done; "$@"; }}
        eval "$(playhead completion bash)"
        for line in "playhead show ref" "playhead ls agent:" "playhead replay x"; do
            COMPREPLY=() COMP_LINE=$line COMP_POINT=${{#line}}
            _playhead_completion playhead 2> /dev/null
            echo "${{COMPREPLY[*]}}"
        done
        """
    )
    environ = {**os.environ, "PLAYHEAD_DATA_DIR": str(data_dir)}
    done = subprocess.run(
        ["bash", "--norc", str(script)], env=environ, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["refund-2 refund-1", "helper refund", ""], done.stderr


def test_where_nothing_can_be_read_nothing_is_offered(tmp_path: Path):
    assert offered(tmp_path / "nowhere", "playhead show re") == []
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "store.sqlite").write_bytes(b"no database" * 100)
    assert offered(tmp_path / "data", "playhead show re") == []


def test_what_is_read_past_the_store_is_what_the_store_says(playhead: CommandLine, data_dir: Path):
    runs = json.loads(CommandLine(data_dir, playhead._capture)("ls", "--json").out)["runs"]  # pyright: ignore[reportPrivateUsage]
    names = [run["name"] for run in runs]
    assert set(stored_words.run_names(data_dir, "")) == set(names)
    assert stored_words.field_values(data_dir, "model", "gpt") == ["gpt-4o"]
    assert {one.replace("error", "error_type") for one in stored_words.KINDS} == set(WORDS[1:]) - {
        "parent",
        "loop",
        "stuck",
        "derived",
    }
    assert [
        WORDS[number].replace("error_type", "error") for number in stored_words.KINDS.values()
    ] == list(stored_words.KINDS)


def test_fields_and_values_are_those_of_the_language():
    for field in FIELDS:
        name, sign = field.rstrip(":>="), field.lstrip("abcdefghijklmnopqrstuvwxyz_")
        for value in VALUES.get(name, ("1" if sign == ">=" and name != "duration" else "1d",)):
            read_language(f"{field}{value}")
    assert (VALUES["status"], VALUES["mode"], set(VALUES["mark"])) == (STATUSES, MODES, set(MARKS))
    assert SUFFIX == tape_file.SUFFIX
