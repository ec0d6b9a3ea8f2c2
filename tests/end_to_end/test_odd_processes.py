"""A recorded program behaves as without playhead, whatever its streams, limits and interpreter are.

Each case runs the program plain and recorded, in the same folder, and compares how it ended, what it
printed, and the files that it left.
"""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.observed.odd_processes import ODD, Odd
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.starting.home import PATIENCE_S, Home
from support.starting.running import until

LAUNCH = """
import fcntl, json, os, resource, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in signal.SIGPIPE, signal.SIGXFSZ:  # by this interpreter
    signal.signal(ignored, signal.SIG_DFL)
words = json.loads(sys.argv[1])
{before}
os.execvp(words[0], words)
"""
INTERPRETER = """#!{python} -I
import os, resource, sys
{inside}
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
OWN_LINE = re.compile(r"(playhead: |next: |error\[|cause: |hint: ).*\n")
TERMINAL = (
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
)


@dataclass(frozen=True)
class Outcome:
    """What a program did."""

    status: int
    stdout: str
    stderr: str
    """Without playhead's own lines."""
    files: Mapping[str, str]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        server.on("/v1/chat/completions", json_reply(openai_chat.completion("re")), repeat=True)
        yield server


@dataclass(frozen=True)
class Stage:
    """The folder in which a case is played, once plain and once recorded."""

    odd: Odd
    folder: Path
    port: int

    def outcome(self, level: str = "") -> Outcome:
        """Run the program, recorded if ``level`` is given."""
        shutil.rmtree(self.folder, ignore_errors=True)
        work = self.folder / "work"
        work.mkdir(parents=True)
        script = self.folder / "odd.py"
        script.write_text(self.odd.source)
        home = Home(self.folder, {"MODEL_PORT": str(self.port), "REPORT": str(work / "report")})
        Path(home.bare["HOME"]).mkdir()
        start = LAUNCH.format(before=TERMINAL * (self.odd.streams != "pipes") + self.odd.before)
        words = [sys.executable, "-c", start, json.dumps(self._words(script, level))]
        environ = {**home.environ, **self.odd.environ}
        run = _piped if self.odd.streams == "pipes" else _on_terminal
        status, stdout, stderr = run(words, environ, work)
        if ".done" in self.odd.source:
            until((work / "report.done").exists, "the detached process is done")
        return Outcome(status, _theirs(stdout), _theirs(stderr), dict(_files(work)))

    def _words(self, script: Path, level: str) -> list[str]:
        python = sys.executable
        if self.odd.inside:
            python = str(self.folder / "python")
            Path(python).write_text(INTERPRETER.format(python=sys.executable, inside=self.odd.inside))
            Path(python).chmod(0o755)
        plain = [*self.odd.command] or [python, *self.odd.options, str(script)]
        if not level:
            return plain
        record = [sys.executable, "-m", "playhead_cli", "record", "--level", level]
        if self.odd.options or self.odd.command:
            return [*record, "--", *plain]
        return [*record, "--python", python, str(script)]


def _piped(words: Sequence[str], environ: Mapping[str, str], work: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        words, env=environ, cwd=work, capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1")


def _on_terminal(words: Sequence[str], environ: Mapping[str, str], work: Path) -> tuple[int, str, str]:
    """Run it on a terminal that hangs up when the program says that it is ready."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        words, env=environ, cwd=work, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        heard = b""
        try:
            while b"ready" not in heard and (more := os.read(master, 1000)):
                heard += more
        except OSError as error:
            assert error.errno == errno.EIO  # it ended
        os.close(master)
        try:
            return process.wait(PATIENCE_S), heard.decode().partition("ready")[0], ""
        finally:
            process.kill()


def _theirs(text: str) -> str:
    """``text`` without playhead's own lines, addresses in memory and counts of references."""
    return re.sub(r"0x[0-9a-f]+|(?<=refcount : )\d+", "…", OWN_LINE.sub("", text))


def _files(work: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(work.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and ".pyc" not in path.name:
            yield str(path.relative_to(work)), path.read_text("latin-1")


def cases() -> Iterator[Any]:
    """Each program at each level; what the suite leaves to the acceptance is marked."""
    for odd in ODD:
        for level in ("exchanges", "causal", "strict"):
            marks = () if odd.always and level == "strict" else pytest.mark.acceptance
            yield pytest.param(odd, level, id=f"{odd.name}-{level}", marks=marks)


@pytest.mark.parametrize(("odd", "level"), list(cases()))
def test_a_recorded_program_behaves_as_a_plain_one(
    tmp_path: Path, model: ScriptedServer, odd: Odd, level: str
):
    stage = Stage(odd, tmp_path / "odd", int(model.url.rpartition(":")[2]))
    assert stage.outcome(level) == stage.outcome()


OPTIONS = """
import sys, warnings, playhead
@playhead.tool(effect="read")
def look(number):
    return number
def attempt(what, *arguments):
    try:
        return what(*arguments)
    except (UserWarning, BytesWarning) as problem:
        return repr(problem)
print(look(81), __debug__, attempt(warnings.warn, "mine"), attempt(str, b"x"), sys.flags.utf8_mode)
"""


@pytest.mark.parametrize("options", [["-O"], ["-W", "error", "-Xutf8"], ["-ubbB", "-s"]], ids=" ".join)
def test_a_replay_has_the_options_of_the_recorded_interpreter(tmp_path: Path, options: list[str]):
    (tmp_path / "agent.py").write_text(OPTIONS)
    home = Home(tmp_path, {})
    done = home.playhead("record", "--level", "strict", "--", sys.executable, *options, "agent.py")
    assert done.returncode == 0, done.stderr
    _, report = home.report("last")
    assert report["verdict"] == "identical", report["first_divergence"]
