"""Mutation testing: changes the sources one thing at a time, and looks whether the tests notice.

``PYTHONPATH=tests .venv-mutants/bin/python -m mutants [--count N] [--seed N] [--room NAME …]`` at the
root: mutants are drawn from what the tests of a room execute. One is killed where a test that executes
its line fails, or takes much longer than it does. Prints a table and who survives; those that
``equivalent.toml`` names behave as the original. Exits 1 below `WANTED` of the others.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

from mutants.copies import ROOT, Copy
from mutants.making import Mutant, sample
from mutants.rooms import ROOMS

WANTED = 0.9
"""Share of the mutants that are killed."""

TESTS_S = 60.0
"""So long the tests that a mutant has to pass take at most, unmutated; the quickest are chosen."""

STARTS_S = 20.0
SLOWER = 4.0
"""Who takes this many times as long, and this much longer, does not end."""

BASELINE_S = 1800.0

MOST_TESTS = 400


Executed: TypeAlias = dict[str, dict[int, list[int]]]
"""By path and line: numbers of the tests that execute it."""


class Seen:
    """Which tests execute what of some rooms, and how long they take."""

    def __init__(self, rooms: list[str], copy: Copy) -> None:
        sources = {
            path for room in rooms for one in ROOMS[room].sources for path in copy.folder.glob(one)
        }
        tests = dict.fromkeys(path for room in rooms for path in ROOMS[room].tests)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "seen.json"
            status = copy.pytest(
                ["-p", "mutants.seen", "-m", "not acceptance", *tests],
                BASELINE_S,
                PLAYHEAD_MUTANTS_SEEN=str(out),
                PLAYHEAD_MUTANTS_SOURCES="\n".join(map(str, sorted(sources))),
                PYTHONPATH=str(copy.folder / "tests"),
            )
            if not out.exists():
                raise SystemExit(f"the tests do not run ({status}):\n{said(copy)}")
            found = json.loads(out.read_text("utf-8"))
        for name in found["failed"]:
            print(f"{name} fails without a mutant, and is left out")
        self._root = copy.folder
        self._tests: list[tuple[str, float]] = [(name, took) for name, took in found["tests"]]
        self._lines: dict[str, dict[str, list[int]]] = found["lines"]

    def of(self, room: str) -> Executed:
        """By path and line of the room's sources: the tests of the room that execute it, by number."""
        belongs = [name.startswith(ROOMS[room].tests) for name, _ in self._tests]
        paths = {str(path) for one in ROOMS[room].sources for path in self._root.glob(one)}
        found = {
            path: {
                int(line): own
                for line, tests in lines.items()
                if (own := [test for test in tests if belongs[test]])
            }
            for path, lines in self._lines.items()
            if str(self._root / path) in paths
        }
        return {path: lines for path, lines in found.items() if lines}

    def chosen(self, tests: list[int]) -> tuple[list[str], float]:
        """The quickest of these tests, and how long they take, in seconds."""
        names: list[str] = []
        sum_s = 0.0
        for name, took in sorted((self._tests[one] for one in tests), key=lambda one: one[1]):
            if names and (sum_s + took > TESTS_S or len(names) == MOST_TESTS):
                break
            names.append(name)
            sum_s += took
        return names, sum_s


def said(copy: Copy) -> str:
    """The last of what pytest said."""
    return "\n".join((copy.folder / "pytest.log").read_text("utf-8", "replace").splitlines()[-15:])


def passes(tests: list[str], took_s: float, copy: Copy) -> bool:
    """Whether these tests pass in a copy as it is, in not much longer than they take."""
    listed = copy.folder / "chosen.txt"
    listed.write_text("\n".join(tests) + "\n", "utf-8")
    limit_s = STARTS_S + SLOWER * took_s
    return copy.pytest(["-x", "-o", f"timeout={limit_s}", f"@{listed}"], limit_s) == 0


def survives(mutant: Mutant, tests: list[str], took_s: float, copy: Copy) -> bool:
    """Whether none of these tests notices."""
    file = copy.folder / mutant.path
    original = file.read_bytes()
    file.write_text(mutant.source, "utf-8")
    try:
        return passes(tests, took_s, copy)
    finally:
        file.write_bytes(original)


def executing(mutant: Mutant, executed: Executed) -> list[int]:
    """The tests that execute the line that a mutant changes, or the one before it in its statement."""
    of_line = executed[mutant.path]
    return of_line[max((line for line in of_line if line <= mutant.line), default=min(of_line))]


def equivalents() -> set[tuple[str, str, str]]:
    """Path, and both sides, of mutants that behave as the original."""
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text("utf-8"))
    return {(one["path"], one["was"], one["now"]) for one in listed.get("mutant", [])}


def rows(results: Iterable[tuple[str, int, int, int]]) -> Iterable[str]:
    """A line for each room: mutants, killed, equivalent, survivors."""
    yield f"{'room':12} {'mutants':>8} {'killed':>8} {'equivalent':>11} {'survived':>9}"
    for room, count, killed, same in results:
        yield f"{room:12} {count:8} {killed:8} {same:11} {count - killed - same:9}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="mutants in all rooms together")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn")
    parser.add_argument("--room", action="append", choices=[*ROOMS], help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the workspace")
    asked = parser.parse_args()
    rooms: list[str] = asked.room or [*ROOMS]
    same = equivalents()
    began = time.monotonic()
    table: list[tuple[str, int, int, int]] = []
    with tempfile.TemporaryDirectory(prefix="playhead-mutants-") as scratch:
        copies = [Copy(Path(scratch) / str(number)) for number in range(asked.jobs)]
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            free.put(copy)
        seen = Seen(rooms, copies[0])
        print(f"what tests execute is known after {time.monotonic() - began:.0f} s", flush=True)
        for number, room in enumerate(rooms):
            count = asked.count // len(rooms) + (number < asked.count % len(rooms))
            executed = seen.of(room)
            draw = random.Random(f"{asked.seed} {room}")
            lines = {path: set(of_line) for path, of_line in executed.items()}
            drawn = list(sample(room, lines, count, draw, ROOT))

            def lives(mutant: Mutant, executed: Executed = executed) -> bool:
                copy = free.get()
                try:
                    return survives(mutant, *seen.chosen(executing(mutant, executed)), copy)
                finally:
                    free.put(copy)

            if drawn and not passes(*seen.chosen(executing(drawn[0], executed)), copies[0]):
                raise SystemExit(f"{room}: tests fail without a mutant:\n{said(copies[0])}")
            left = [one for one in drawn if (one.path, one.was, one.now) not in same]
            with ThreadPoolExecutor(asked.jobs) as workers:
                alive = [one for one, there in zip(left, workers.map(lives, left), strict=True) if there]
            table.append((room, len(drawn), len(left) - len(alive), len(drawn) - len(left)))
            print(
                f"{room}: {len(left) - len(alive)} of {len(left)} killed", *alive, sep="\n", flush=True
            )
    counted = sum(count - equal for _, count, _, equal in table)
    killed = sum(one[2] for one in table)
    print(*rows(table), sep="\n")
    share = killed / counted if counted else 1.0
    print(f"{killed} of {counted} killed, {share:.1%}, in {time.monotonic() - began:.0f} s")
    return int(share < WANTED)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as problem:
        sys.exit(f"mutants: {problem}")
