"""Writes a golden anew where the program's outcome has changed, answered from the golden alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playhead_core.errors import PlayheadError
from playhead_replay.goldens.conditions import unfulfilled
from playhead_replay.goldens.golden_file import read_stored, write_golden
from playhead_replay.goldens.merging import renewed
from playhead_replay.goldens.replayed_golden import Expectation, ReplayedGolden
from playhead_replay.run.run import Run
from playhead_replay.runner.configuration import ReplayConfiguration, Rules, Surroundings
from playhead_replay.runner.replaying import Replayer
from playhead_replay.tape_files.tape_file import SUFFIX, read_unfinished


@dataclass(frozen=True, slots=True)
class Renewed:
    """What became of a golden."""

    path: Path
    updated: bool = False
    problem: str | None = None
    """Why it was left as it is, although the replay differs."""


def renew(path: Path, python: str = "", *, foreign: bool = False) -> Renewed:
    """Replay a golden with the present program; write it anew if only outcomes differ.

    ``python``: the interpreter; empty: the recorded one. ``foreign``: see `Surroundings`.
    """
    try:
        stored = read_stored(path)
        with TemporaryDirectory(prefix="playhead-golden-") as scratch:
            kept = Path(scratch, "now.tape")
            around = Surroundings(python, stored.folder, foreign=foreign)
            done = Replayer(ReplayConfiguration(around, Rules(force=True), kept)).replay(stored.run)
            now = Run.of_tapes(read_unfinished(kept).tapes, name=stored.run.name)
            broken = Expectation(outcome="changed").broken(done.report)
            if broken:
                return Renewed(path, problem=f"{broken[0].place}: {broken[0].kind} {broken[0].what}")
            wrong = unfulfilled(ReplayedGolden(path, stored.run, now, done), stored.purpose.expect)
            if wrong:
                condition, found = wrong[0]
                return Renewed(path, problem=f"expected: {condition}; now: {found}")
            if not done.report.divergences:
                return Renewed(path)
            packed, purpose = path.suffix != SUFFIX, stored.purpose
            write_golden(path, renewed(stored.run, now), compressed=packed, purpose=purpose)
            return Renewed(path, updated=True)
    except PlayheadError as problem:
        return Renewed(path, problem=problem.what)
