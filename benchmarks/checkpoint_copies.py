"""What the copies of a recording add to puts: the conversations of `checkpoints.py`, with and without.

Each put of ``playhead, copied`` makes the copy that a recording puts on its tape. Both stores take each
state in turns, another one first each time. ``copy_bytes`` are the bytes of the last fifty copies, for
each; the other figures are those of `checkpoints.py`. The times of the processor count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import checkpoints
from checkpoints import LAST, Ours, OurSaver

from playhead_checkpoint.copies import reporting
from playhead_instrumentation.redaction import Redactor

BUDGET = 1 << 28
SIZES: list[int] = []
"""Of the copies that were made last."""


class Copied:
    """Copies what one store puts, as a recording does."""

    def __init__(self) -> None:
        self.copier = reporting.copier(Redactor(), BUDGET)

    def put(self, put: Any, messages: list[Any]) -> Any:
        silent, reporting.report_state = reporting.report_state, self.told
        try:
            return put(messages)
        finally:
            reporting.report_state = silent

    def told(self, *given: Any) -> None:
        copy = self.copier.copy(b"run", *given)
        assert copy is not None
        SIZES.append(len(copy))


class CopiedStore(Ours):
    """The store of this project in a recording."""

    name = "playhead, store, copied"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.copied = Copied()

    def put(self, messages: list[Any]) -> bytes:
        return self.copied.put(super().put, messages)


class CopiedSaver(OurSaver):
    """The saver of this project in a recording."""

    name = "playhead, saver, copied"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.copied = Copied()

    def put(self, messages: list[Any]) -> Any:
        return self.copied.put(super().put, messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=[50, 400, 2_000])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    ways: list[tuple[Sequence[Any], Any]] = [((Ours, CopiedStore), checkpoints.message)]
    if checkpoints.importlib.util.find_spec("langgraph"):
        ways.append(((OurSaver, CopiedSaver), checkpoints.langchain_message))
    for kinds, made in ways:
        for steps in arguments.steps:
            SIZES.clear()
            plain, copied = checkpoints.over_runs(kinds, steps, made, arguments.runs)
            size = round(sum(SIZES[-LAST:]) / LAST)
            for row in (plain, {**copied, "copy_bytes": size}):
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
