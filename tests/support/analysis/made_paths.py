"""Paths of runs made of labels, without spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from playhead_analysis import PathStep, RunPath

START_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def path(labels: str | Sequence[str], name: str = "agent-1", **fields: Any) -> RunPath:
    """A run whose steps take a second each, with half a second between them.

    ``chat…`` is a model, other labels are tools; a label with ``!`` at its end has failed.
    """
    words = labels.split() if isinstance(labels, str) else labels
    steps = tuple(
        PathStep(
            str(number),
            "model" if label.startswith("chat") else "tool",
            label.rstrip("!"),
            label.rstrip("!"),
            "error" if label.endswith("!") else "ok",
            START_NS + (number - 1) * 3 * SECOND // 2,
            SECOND,
            failure="timeout" if label.endswith("!") else "",
        )
        for number, label in enumerate(words, 1)
    )
    took = len(words) * 3 * SECOND // 2
    values: dict[str, Any] = {
        "trace_id": name,
        "agent": name.rpartition("-")[0],
        "version": "",
        "status": "success",
        "started_ns": START_NS,
        "duration_ns": took,
        "cost_usd": 0.01,
        "input_tokens": 10,
        "output_tokens": 1,
        **fields,
    }
    return RunPath(name=name, steps=steps, **values)


Model = Callable[[Random], list[str]]


def _loop(rng: Random, body: Sequence[str], again: float) -> list[str]:
    found = [*body]
    while rng.random() < again:
        found += body
    return found


def _interleaved(rng: Random, left: Sequence[str], right: Sequence[str]) -> list[str]:
    one, other, found = list(left), list(right), list[str]()
    while one or other:
        found.append((one if one and (not other or rng.random() < 0.5) else other).pop(0))
    return found


def _agent(rng: Random) -> list[str]:
    found = ["chat"]
    while rng.random() < 0.8:
        found += [rng.choice(["search", "read", "write", "mail"]), "chat"]
    return found


MODELS: dict[str, Model] = {
    "sequence": lambda rng: list("abcdefgh"),
    "choice": lambda rng: ["a", rng.choice("bcd"), "e"],
    "uneven choice": lambda rng: ["a", "b" if rng.random() < 0.9 else "c", "d", "e"],
    "skip": lambda rng: ["a", *(["b"] if rng.random() < 0.6 else []), "c", "d"],
    "loop of one": lambda rng: ["a", *_loop(rng, "b", 0.5), "c"],
    "loop of three": lambda rng: ["a", *_loop(rng, "bcd", 0.6), "e"],
    "parallel": lambda rng: ["a", *_interleaved(rng, "bc", "de"), "f"],
    "nested": lambda rng: ["a", *(_loop(rng, "bc", 0.4) if rng.random() < 0.5 else "de"), "f", "g"],
    "long": lambda rng: list("abcdefg") + list("hij" if rng.random() < 0.3 else "klm") + list("nop"),
    "agent": _agent,
}
"""Ten known processes: each makes the labels of a run."""


@cache
def edges_of_model(model: Model) -> set[tuple[str, str]]:
    """The edges of a process: all that 5,000 runs without noise take."""
    rng = Random(1)
    found: set[tuple[str, str]] = set()
    for _ in range(5000):
        labels = ["(start)", *model(rng), "(end)"]
        found |= set(pairwise(labels))
    return found


def with_noise(labels: Sequence[str], rng: Random) -> list[str]:
    """A run with one accident: a step lost, doubled, swapped or strange, or its begin or end missing."""
    found = list(labels)
    at = rng.randrange(len(found))
    match rng.randrange(6):
        case 0:
            del found[at]
        case 1:
            found.insert(at, rng.choice([*labels, "strange"]))
        case 2:
            found[at : at + 2] = found[at : at + 2][::-1]
        case 3:
            found = found[len(found) // 3 :]
        case 4:
            found = found[: 2 * len(found) // 3 + 1]
        case _:
            found.insert(at, found[at])
    return found


def runs_of(model: Model, count: int, noise: float, rng: Random) -> list[RunPath]:
    """Runs of a process, of which a share has an accident."""
    found: list[RunPath] = []
    for number in range(count):
        labels = model(rng)
        found.append(
            path(with_noise(labels, rng) if rng.random() < noise else labels, f"agent-{number}")
        )
    return found
