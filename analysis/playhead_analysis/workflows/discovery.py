"""A first workflow, discovered from good runs, as the text of a file to review."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from glob import escape
from itertools import permutations
from typing import Final

from playhead_analysis.flows.graph import END, START, edges_of
from playhead_analysis.paths import RunPath
from playhead_analysis.workflows.conformance import SECOND
from playhead_analysis.workflows.definition import BOUNDS, MOST_ENTRIES

FEWEST_RUNS: Final = 2
"""A rule needs as many runs."""
ACCIDENTS: Final = 0.02
"""Share of the good runs in which an action may be missing and is required nevertheless."""
SLACK: Final = 1.5
"""Bounds that vary between the runs are this much above the largest value that was seen."""
MOST_RULES: Final = 50


def discover(
    good: Sequence[RunPath], other: Sequence[RunPath] = (), name: str = "", agents: Sequence[str] = ()
) -> str:
    """Return a workflow file that the ``good`` runs conform to, except for rare accidents in them.

    ``other``: runs that are not good; what only these do becomes a rule of absence.
    """
    edges = [edge for edge in edges_of(good) if not edge.is_rare]
    counts = [Counter(path.labels) for path in good]
    kept = {one for edge in edges for one in (edge.source, edge.target)} - {START, END}
    labels = [
        label
        for label, _ in sum(counts, Counter[str]()).most_common()
        if label in kept and label.isprintable()
    ][:MOST_ENTRIES]
    absent = sorted(
        {
            label
            for path in other
            for label in path.labels
            if label.isprintable() and not any(label in one for one in counts)
        }
    )[: MOST_ENTRIES - len(labels)]
    known = set(labels)
    lines = [
        f"# Discovered from {len(good)} good run{'s' * (len(good) != 1)}."
        " Review it: what they all did need not be required.",
        f"name = {_text(name or 'discovered')}",
        f"agents = [{', '.join(map(_text, agents))}]",
        *_ends("start", (edge.target for edge in edges if edge.source == START), known),
        *_ends("end", (edge.source for edge in edges if edge.target == END), known),
    ]
    states = [state for state in dict.fromkeys(good[0].states) if all(state in p.states for p in good)]
    for state in states[:MOST_ENTRIES]:
        lines += ["", "[[state]]", f"name = {_text(state)}"] if state.isprintable() else []
    for label in labels:
        numbers = sorted(count[label] for count in counts)
        least, most = numbers[int(len(numbers) * ACCIDENTS)], numbers[-1]
        if numbers[0] != most:  # a number that varies will be another one in the next run
            least, most = min(least, 1), math.ceil(most * SLACK)
        lines += ["", "[[action]]", f"name = {_text(label)}"]
        lines += [f"match = [{_text(escape(label))}]"] if escape(label) != label else []
        lines += [f"minimum = {least}"] if least else []
        lines += [f"maximum = {most}"]
    for label in absent:
        lines += ["", "[[action]]", f"name = {_text(label)}"]
        lines += [f"match = [{_text(escape(label))}]"] if escape(label) != label else []
    for edge in edges[:MOST_ENTRIES]:
        if edge.source in known and edge.target in known:
            lines += ["", "[[transition]]", f"from = {_text(edge.source)}", f"to = {_text(edge.target)}"]
            lines += ["required = true"] if edge.runs == len(good) else []
    for first, then in precedences(good, labels)[:MOST_RULES]:
        lines += [
            "",
            "[[rule]]",
            'kind = "precedence"',
            f"first = {_text(first)}",
            f"then = {_text(then)}",
        ]
    for label in absent:
        lines += ["", "[[rule]]", 'kind = "absence"', f"first = {_text(label)}"]
    lines += ["", "[bounds]", *_bounds(good), "", "[success]", 'status = ["success"]']
    return "\n".join(lines) + "\n"


def precedences(paths: Sequence[RunPath], labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs (A, B) such that in every run that has B, an A comes before the first B.

    Pairs that follow from others are left out: of A, B, C only A → B and B → C.
    """
    firsts = [{label: at for at, label in reversed(list(enumerate(path.labels)))} for path in paths]
    found: set[tuple[str, str]] = set()
    for first, then in permutations(labels, 2):
        having = [one for one in firsts if then in one]
        if len(having) >= FEWEST_RUNS and all(one.get(first, math.inf) < one[then] for one in having):
            found.add((first, then))
    implied = {(a, c) for a, b in found for c in labels if (b, c) in found and (a, c) in found}
    return sorted(found - implied, key=lambda pair: (labels.index(pair[0]), labels.index(pair[1])))


def _ends(word: str, labels: Iterator[str], known: set[str]) -> list[str]:
    names = [label for label in labels if label in known]
    return [f"{word} = [{', '.join(map(_text, names))}]"] if names else []


def _bounds(paths: Sequence[RunPath]) -> Iterator[str]:
    times = [path.duration_ns for path in paths if path.duration_ns is not None]
    costs = [path.cost_usd for path in paths if path.cost_usd is not None]
    largest = {
        "duration_s": math.ceil(max(times, default=0) * SLACK / SECOND),
        "cost_usd": round(max(costs, default=0.0) * SLACK, 4) if len(costs) == len(paths) else 0,
        "model_calls": math.ceil(
            max(sum(step.kind == "model" for step in path.steps) for path in paths) * SLACK
        ),
        "steps": math.ceil(max(len(path.steps) for path in paths) * SLACK),
    }
    for word in BOUNDS:
        if largest.get(word):
            yield f"{word} = {largest[word]}"


def _text(text: str) -> str:
    """Return a TOML string: JSON writes the same escapes."""
    return json.dumps(text, ensure_ascii=False)
