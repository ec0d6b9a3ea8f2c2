"""Mutants of a source: made by the operators of mutmut, of lines that tests execute."""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.file_mutation import create_mutations


class Mutant(NamedTuple):
    """A source with one thing changed."""

    room: str
    path: str
    """From the root of the workspace."""
    line: int
    """The first that differs."""
    was: str
    """The lines that differ, without what stands before and behind them."""
    now: str
    source: str
    """The whole file."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n  - {self.was}\n  + {self.now}"


def sample(
    room: str, lines: dict[str, set[int]], count: int, draw: random.Random, root: Path
) -> Iterator[Mutant]:
    """``count`` mutants of a room, each as likely as any. ``lines``: by path, what tests execute."""
    made = []
    for path in sorted(lines):
        source = (root / path).read_text("utf-8")
        module, mutations, *_ = create_mutations(path, source, lines[path])
        made += [(path, source, module, one) for one in mutations]
    draw.shuffle(made)
    for path, source, module, one in made:
        if count == 0:
            return
        changed = module.deep_replace(one.original_node, one.mutated_node).code
        found = _difference(source, changed)
        if found is None:
            continue
        count -= 1
        yield Mutant(room, path, *found, changed)


def _difference(source: str, changed: str) -> tuple[int, str, str] | None:
    """The first line that differs, and both sides; None where they differ in nothing that counts.

    Letters in another case are not counted: SQL does not tell them apart, and they are words of hints.
    """
    old, new = source.splitlines(), changed.splitlines()
    for tag, begin, end, there, behind in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag != "equal":
            sides = [" ".join(" ".join(one).split()) for one in (old[begin:end], new[there:behind])]
            return (begin + 1, *sides) if sides[0].lower() != sides[1].lower() else None
    return None
