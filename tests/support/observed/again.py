"""Records a program in a process and replays it in another."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.starting.programs import Program
from support.starting.warm import run

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay.report.compare import compare
from playhead_replay.report.report import Report
from playhead_replay.tape_files.tape_file import read_tape_file, write_tape_file
from playhead_semconv import events as e

PATIENCE_S = 60


@dataclass
class Again:
    """A recording and its replay."""

    recorded: subprocess.CompletedProcess[str]
    replayed: subprocess.CompletedProcess[str]
    tape: MemoryTape
    now: MemoryTape
    report: Report

    def identical(self) -> Again:
        """Fail if anything differs."""
        assert self.replayed.stdout == self.recorded.stdout, self.replayed.stderr
        assert self.report.verdict == "identical", "\n".join(self.report.lines())
        return self


def recorded(
    program: Program, *arguments: str, stdin: str | None = None, level: str = "causal"
) -> tuple[subprocess.CompletedProcess[str], MemoryTape]:
    """Run ``program`` recorded. Returns its result, and the tape of its main process."""
    try:
        done = _run(
            program,
            ["record", "--", "agent.py", *arguments],
            stdin,
            {"PLAYHEAD_LEVEL": level, "PLAYHEAD_QUIET": "1"},
        )
        facts = program.facts()
    finally:
        program.close()
    main = next(fact.instance for fact in facts if fact.name == e.PLAYHEAD_PROCESS_START)
    forks = {fact.instance for fact in facts} - {main}
    if forks:
        tapes = [MemoryTape([fact for fact in facts if fact.instance == one], one) for one in forks]
        write_tape_file(program.folder / "forks.tape", tapes)
    return done, MemoryTape([fact for fact in facts if fact.instance == main], main)


def replayed(
    program: Program, tape: MemoryTape, *words: str, arguments: tuple[str, ...] = (), **environ: str
) -> tuple[subprocess.CompletedProcess[str], MemoryTape]:
    """Replay ``program`` from ``tape``. ``words``: for the launcher."""
    write_tape_file(program.folder / "recorded.tape", tape)
    if (program.folder / "forks.tape").exists():
        words = ("--forks", "forks.tape", *words)
    asked = ["replay", "--tape", "recorded.tape", "--now", "now.tape", *words, "--", "agent.py"]
    done = _run(program, [*asked, *arguments], None, environ)
    return done, read_tape_file(program.folder / "now.tape").tape


def again(
    folder: Path,
    source: str,
    *arguments: str,
    stdin: str | None = None,
    level: str = "causal",
    **environ: str,
) -> Again:
    """Record ``source``, replay it, compare."""
    program = Program.of(folder, source, PYTHONHASHSEED="0", **environ)
    done, tape = recorded(program, *arguments, stdin=stdin, level=level)
    repeated, now = replayed(program, tape, arguments=arguments)
    return Again(done, repeated, tape, now, compare(tape, now))


def _run(
    program: Program, words: list[str], stdin: str | None, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return run(
        [sys.executable, "-m", "playhead_instrumentation", *words],
        cwd=program.folder,
        env={**program.environ, **environ},
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        timeout=PATIENCE_S,
    )
