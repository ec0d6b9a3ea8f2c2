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


class Seen:
    """Which tests execute what of a room, and how long they take."""

    def __init__(self, room: str, copy: Copy) -> None:
        sources = [path for one in ROOMS[room].sources for path in sorted(copy.folder.glob(one))]
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "seen.json"
            status = copy.pytest(
                ["-p", "mutants.seen", "-m", "not acceptance", *ROOMS[room].tests],
                BASELINE_S,
                PLAYHEAD_MUTANTS_SEEN=str(out),
                PLAYHEAD_MUTANTS_SOURCES="\n".join(map(str, sources)),
                PYTHONPATH=str(copy.folder / "tests"),
            )
            if not out.exists():
                raise SystemExit(f"{room}: its tests do not run ({status}):\n{said(copy)}")
            found = json.loads(out.read_text("utf-8"))
        self._tests: list[tuple[str, float]] = [(name, took) for name, took in found["tests"]]
        self._of_line: dict[str, dict[int, list[int]]] = {
            path: {int(line): tests for line, tests in lines.items() if tests}
            for path, lines in found["lines"].items()
        }
        self.lines = {path: set(lines) for path, lines in self._of_line.items() if lines}

    def tests(self, path: str, line: int) -> tuple[list[str], float]:
        """The quickest tests that execute a line, or the one before it in its statement; how long."""
        of_line = self._of_line[path]
        near = max((one for one in of_line if one <= line), default=min(of_line))
        chosen: list[str] = []
        sum_s = 0.0
        for name, took in sorted((self._tests[one] for one in of_line[near]), key=lambda one: one[1]):
            if chosen and (sum_s + took > TESTS_S or len(chosen) == MOST_TESTS):
                break
            chosen.append(name)
            sum_s += took
        return chosen, sum_s


def said(copy: Copy) -> str:
    """The last of what pytest said."""
    return "\n".join((copy.folder / "pytest.log").read_text("utf-8", "replace").splitlines()[-15:])


def passes(mutant: Mutant, seen: Seen, copy: Copy) -> bool:
    """Whether the tests that execute what a mutant changes pass in a copy as it is."""
    tests, took = seen.tests(mutant.path, mutant.line)
    listed = copy.folder / "chosen.txt"
    listed.write_text("\n".join(tests) + "\n", "utf-8")
    limit_s = STARTS_S + SLOWER * took
    return copy.pytest(["-x", "-o", f"timeout={limit_s}", f"@{listed}"], limit_s) == 0


def survives(mutant: Mutant, seen: Seen, copy: Copy) -> bool:
    """Whether no test notices."""
    file = copy.folder / mutant.path
    original = file.read_bytes()
    file.write_text(mutant.source, "utf-8")
    try:
        return passes(mutant, seen, copy)
    finally:
        file.write_bytes(original)


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
        for number, room in enumerate(rooms):
            count = asked.count // len(rooms) + (number < asked.count % len(rooms))
            seen = Seen(room, copies[0])
            draw = random.Random(f"{asked.seed} {room}")
            drawn = list(sample(room, seen.lines, count, draw, ROOT))
            if drawn and not passes(drawn[0], seen, copies[0]):
                raise SystemExit(f"{room}: tests fail without a mutant:\n{said(copies[0])}")
            left = [one for one in drawn if (one.path, one.was, one.now) not in same]

            def lives(mutant: Mutant, seen: Seen = seen) -> bool:
                copy = free.get()
                try:
                    return survives(mutant, seen, copy)
                finally:
                    free.put(copy)

            with ThreadPoolExecutor(asked.jobs) as workers:
                alive = [one for one, there in zip(left, workers.map(lives, left), strict=True) if there]
            table.append((room, len(drawn), len(left) - len(alive), len(drawn) - len(left)))
            print(
                f"{room}: {len(left) - len(alive)} of {len(drawn)} killed", *alive, sep="\n", flush=True
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
