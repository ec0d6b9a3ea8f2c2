"""``playhead replay --bisect GOLDEN``: one commit, judged for ``git bisect run``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_cli.session.messages import show_failure
from playhead_cli.session.session import Session
from playhead_core.errors import PlayheadError, ReplayFailed, TapeMissing
from playhead_core.untrusted.shown_text import visible
from playhead_replay import Environment, ReplayConfiguration, Replayer, ReplayResult, Rules, Run
from playhead_replay.goldens import read_golden
from playhead_replay.run.outputs import Outputs

if TYPE_CHECKING:
    from playhead_cli.running.program import Program

GOOD, BAD = 0, 1
UNJUDGED = 125
"""Exit status: ``git bisect`` skips the commit."""
BROKEN = ("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError")
"""Exceptions that end a program which cannot run here at all."""

BAD_COMMIT = "refs/bisect/bad"


def judge(session: Session, golden: Path, program: Program) -> int:
    """0: the program behaves as in the golden; 1: it does not; 125: this cannot be determined here.

    A golden that is missing in the working tree is read from the commit that is known to be bad.
    ``program``: its interpreter, folder and check functions are used, if given.
    """
    try:
        done = _replayed(golden, program)
    except PlayheadError as problem:
        if session.as_json:
            show_failure(problem, as_json=True, verbose=session.verbose)
            return UNJUDGED
        session.say(f"this commit cannot be judged: {problem.what}")
        if problem.cause:
            session.say(problem.cause)
        return UNJUDGED
    if session.as_json:
        session.print_json(done.report.to_json())
    for line in () if session.as_json else done.report.lines():
        sys.stdout.write(f"{visible(line)}\n")
    return GOOD if done.report.exit_code == 0 else BAD


def _replayed(golden: Path, program: Program) -> ReplayResult:
    run, folder = _read(golden)
    if program.cwd:
        folder = Path(program.cwd)
    elif not _has_program(run, folder):
        folder = Path.cwd()
    if not _has_program(run, folder):
        raise TapeMissing(f"{run.command.script} is not in {folder}")
    # Bytecode of an earlier commit could be mistaken for that of this one.
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    around = Environment(program.python or sys.executable, folder, environ)
    rules = Rules(force=True, checks=program.checks)
    done = Replayer(ReplayConfiguration(around, rules)).replay(run)
    _require_started(run, done)
    return done


def _read(golden: Path) -> tuple[Run, Path]:
    if golden.exists():
        return read_golden(golden)
    place = os.path.relpath(golden)
    shown = subprocess.run(["git", "show", f"{BAD_COMMIT}:./{place}"], capture_output=True, check=False)
    if shown.returncode:
        raise TapeMissing(f"no golden at {golden}")
    with tempfile.TemporaryDirectory(prefix="playhead-bisect-") as scratch:
        copy = Path(scratch, golden.name)
        copy.write_bytes(shown.stdout)
        run, folder = read_golden(copy)
        # Relative to the golden's real location.
        seen = os.path.relpath(folder, Path(scratch).resolve())
        return run, (golden.absolute().parent / seen).resolve()


def _has_program(run: Run, folder: Path) -> bool:
    path = run.command.script_path(folder)
    return folder.is_dir() and (path is None or path.is_file())


def _require_started(run: Run, done: ReplayResult) -> None:
    """`ReplayFailed` if the program could not run: a missing module, or a file that does not compile."""
    recorded, now = run.outputs.exit, Outputs.exit_of(done.now)
    why = "" if now is None or now.error is None else now.error.qualname
    if why in BROKEN and (recorded is None or str(recorded) != str(now)):
        raise ReplayFailed(f"the program cannot run here: {now}")
    said = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode == 2 and said and said[0].startswith("error["):
        raise ReplayFailed(f"the program cannot run here: {said[0].partition(': ')[2]}")
