"""``playhead browse`` as it is typed: in a terminal, without one, without textual."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from support.starting.cli import CommandLine, refund, store_run

from playhead_cli.app import MODULES
from playhead_cli.commands.inspect import browse

ROOT = Path(browse.__file__).parents[2]


def test_without_the_extra_it_says_what_to_install(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(browse.importlib.util, "find_spec", lambda name: None)
    done = playhead("browse")
    assert done.status == 2
    assert done.err.splitlines() == [
        "error[usage]: the package textual is not installed",
        "hint: pip install 'playhead[tui]'",
    ]


def test_without_a_terminal_it_names_another_command(playhead: CommandLine):
    done = playhead("browse", "refund-7:3")
    assert done.status == 2
    assert "error[usage]: browse needs a terminal" in done.err
    assert "hint: playhead show refund-7" in done.err


def test_no_other_command_loads_textual():
    """Neither a command nor anything that it imports when it starts, nor what they import later."""
    rest = [module for name, module in MODULES.items() if name != "browse"]
    probe = (
        "import importlib, sys\n"
        f"for name in {rest!r}: importlib.import_module(name)\n"
        "importlib.import_module('playhead_cli.commands.inspect.browse')\n"
        "print([name for name in sys.modules if name.startswith(('textual', 'playhead_cli.browse'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    importers = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if "textual" in path.read_text("utf-8") or "playhead_cli.browse" in path.read_text("utf-8")
    }
    assert {path for path in importers if not path.startswith("browse/")} == {
        "commands/inspect/browse.py"
    }


def test_it_browses_in_a_terminal(tmp_path: Path):
    name = store_run(tmp_path, refund())
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "playhead_cli", "browse", name, "--data-dir", str(tmp_path)]
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    browser = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=environ)
    os.close(slave)
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            seen += os.read(master, 1 << 16).decode(errors="replace")
        seen = seen.rpartition(text)[2]

    try:
        until("ValueError: no order")
        os.write(master, b":ls\r")
        until("Enter: back to the run")
        os.write(master, b"\r")
        until("RECORDED")
        os.write(master, b"y")
        until("\x1b]52;c;")
        os.write(master, b"q")
        assert browser.wait(60) == 0
    finally:
        browser.kill()
        browser.wait()
        os.close(master)
