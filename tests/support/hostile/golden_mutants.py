"""Replays damaged goldens under pytest; the program that each of them starts is watched.

``python -m support.hostile.golden_mutants SEED COUNT FOLDER``: as `mutants_run`, for files of goldens
that were damaged as values or as text. A program of another kind shows first that the watch works.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from support.hostile.mutants_run import FOREIGN, NOT_ISOLATED, PROGRAM, DamagedRuns, Tried
from support.observed.asking import ASKING
from support.starting.inner_pytest import ONLY_OURS

from playhead_cli.demo.provider import Provider
from playhead_core.tape.frames import Header
from playhead_core.tape.frames_text import to_text
from playhead_replay.tape_files.tape_file import read_tape_file

TEST = "def test_it(tape):\n    tape.replay('agent', unused='allow', outcome='changed')\n"
PYTEST = """
import pytest
sys.executable = {python!r}
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests"]))
"""
"""Starts programs with the interpreter that watches them."""


class DamagedGoldens(DamagedRuns):
    """Generator of damaged goldens of a recorded run."""

    def text(self) -> bytes:
        """The text of the next one."""
        self._choose()
        whole = self._tapes[0]
        facts = [self._with_opcodes(fact) for fact in self._facts()] if self.facts is whole else whole
        try:
            text = to_text([Header(whole[0].instance, 1), *facts]).encode("utf-8", "replace")
        except (TypeError, ValueError, OverflowError):
            return self.text()
        return self._bytes(text)


class Goldens:
    """A project with one golden, whose test is run."""

    def __init__(self, tried: Tried) -> None:
        self._tried = tried
        agent = tried.folder / "agent"
        self.program = agent / "agent.py"
        tests = agent / "tests"
        self.file = tests / "goldens" / "agent.tape"
        added = tried.run("golden", "add", "last", "--name", "agent")
        assert added[0] == 0, added[1]
        (tests / "test_agent.py").write_text(TEST)
        tried.expects("tests")
        tried.expects(".playhead")  # the tapes of replays that failed

    def run(self) -> tuple[int | None, str]:
        """Run the test."""
        program = NOT_ISOLATED + PYTEST.format(python=str(self._tried.python))
        return self._tried.run_words([sys.executable, "-c", program], ONLY_OURS)


def main(seed: int, count: int, folder: Path) -> int:
    with Provider(pace_s=0.0) as provider:
        tried = Tried(folder, provider)
        recorded = tried.run("record", "--level", "causal", "agent.py")
        assert recorded[0] == 0, recorded[1]
        exported = tried.run("export", "-o", "whole.tape")
        assert exported[0] == 0, exported[1]
        goldens = Goldens(tried)
        tried.watch()
        goldens.program.write_text(FOREIGN)
        ended = goldens.run()
        assert "imports this\n" in tried.problem(), (ended, tried.problem())
        tried.log.write_text("")
        goldens.program.write_text(ASKING + PROGRAM, "utf-8")
        first = goldens.run()
        assert first[0] == 0 and not tried.problem(), (first, tried.problem())
        whole = read_tape_file(folder / "agent" / "whole.tape")
        damaged, ends = DamagedGoldens(seed, whole), Counter[str]()
        for number in range(count):
            goldens.file.write_bytes(damaged.text())
            status, said = goldens.run()
            ends["hangs" if status is None else str(status)] += 1
            problem = tried.problem()
            if status is None or "INTERNALERROR" in said:
                problem += said
            if problem:
                print(f"seed {seed}, number {number}: {problem[:3000]}")
                return 1
    print(json.dumps(dict(sorted(ends.items()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
