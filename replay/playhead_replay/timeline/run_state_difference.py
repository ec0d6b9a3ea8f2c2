"""Compares two states of a run: program states, conversations, files, databases, and output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from playhead_core.difference import Difference, json_difference, text_difference
from playhead_core.errors import PlayheadError, TapeError
from playhead_genai.messages import plain
from playhead_replay.databases import DatabaseState, Table, Value, plain_value, tables_of
from playhead_replay.run.states import State
from playhead_replay.timeline.run_state import KEPT, RunState
from playhead_replay.workspace.history import Tree, TreeItem, tree_difference

ABSENT = "(absent)"

COMPARED_ROWS = 10_000
"""Number of compared rows of a table; of further rows only the count is compared."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One difference between two states of a run."""

    kind: str
    """state, conversation, file, database, or printed."""
    name: str
    """Name of the state, lane, file, database, or stream."""
    difference: Difference
    """The first difference; its sides are *tape* for the first state and *now* for the second."""


def differences(first: RunState, second: RunState) -> list[Changed]:
    """Return all differences: states, conversations, files, databases, streams."""
    return [
        *_in_states(first.states, second.states),
        *_in_conversations(first, second),
        *_in_files(first.files, second.files),
        *_in_databases(first.databases, second.databases),
        *_in_streams(first, second),
    ]


def _in_states(first: Mapping[str, State], second: Mapping[str, State]) -> Iterator[Changed]:
    for name in dict.fromkeys([*first, *second]):
        one, other = first.get(name), second.get(name)
        if one is None or other is None:
            yield Changed("state", name, _missing_side(one is not None))
            continue
        if one.content.digest == other.content.digest:
            continue
        try:
            found = json_difference(one.value, other.value)
        except (TapeError, ValueError, RecursionError):
            sides = (side.content.digest.hex()[:16] for side in (one, other))
            found = Difference("digest", *sides)
        if found is not None:
            yield Changed("state", name, found)


def _in_conversations(first: RunState, second: RunState) -> Iterator[Changed]:
    ours, theirs = _by_lane(first), _by_lane(second)
    for lane in dict.fromkeys([*ours, *theirs]):
        if lane not in ours or lane not in theirs:
            yield Changed("conversation", lane, _missing_side(lane in ours))
            continue
        found = json_difference(ours[lane], theirs[lane])
        if found is not None:
            yield Changed("conversation", lane, found)


def _by_lane(state: RunState) -> dict[str, Any]:
    return {
        one.lane: {
            "system": [plain(part) for part in one.messages.system],
            "messages": [plain(message) for message in (*one.messages.input, *one.messages.output)],
            "tools": [plain(tool) for tool in one.messages.tools],
        }
        for one in state.conversations
    }


def _in_files(first: Tree, second: Tree) -> Iterator[Changed]:
    for path, what, before, after in tree_difference(first, second):
        if before is None or after is None:
            yield Changed("file", path, _missing_side(before is not None))
            continue
        one, other = _content(before), _content(after)
        found = None if one is None or other is None else text_difference(one, other)
        yield Changed("file", path, found or Difference(what, _shown(before), _shown(after)))


def _in_databases(first: list[DatabaseState], second: list[DatabaseState]) -> Iterator[Changed]:
    ours, theirs = ({one.name: one for one in databases} for databases in (first, second))
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            yield Changed("database", name, _missing_side(one is not None))
        elif one.image != other.image or one.why != other.why:
            found = _in_tables(_tables(one.image, one.why), _tables(other.image, other.why))
            if found is not None:
                yield Changed("database", name, found)


@lru_cache(KEPT)
def _tables(image: bytes | None, why: str) -> str | list[Table]:
    """Return the tables of a database, or why they are unknown."""
    try:
        return why if image is None else tables_of(image, COMPARED_ROWS)
    except ValueError as problem:
        return str(problem)


def _in_tables(one: str | list[Table], other: str | list[Table]) -> Difference | None:
    if isinstance(one, str) or isinstance(other, str):
        sides = (side if isinstance(side, str) else "(known)" for side in (one, other))
        return None if one == other else Difference("$", *sides)
    ours, theirs = ({table.name: table for table in tables} for tables in (one, other))
    for name in dict.fromkeys([*ours, *theirs]):
        if name not in ours or name not in theirs:
            return _missing_side(name in ours, f"$.{name}")
        if (found := _in_table(ours[name], theirs[name])) is not None:
            return found
    return None


def _in_table(one: Table, other: Table) -> Difference | None:
    """Return the first row that differs, or a difference of the row counts."""
    if one.columns != other.columns:
        return json_difference(one.columns, other.columns, f"$.{one.name}.columns")
    for at, (ours, theirs) in enumerate(zip_longest(one.rows, other.rows)):
        if ours != theirs:
            path = f"$.{one.name}[{at}]"
            if ours is None or theirs is None:
                return Difference(path, _row(ours), _row(theirs))
            return json_difference(_plain(ours), _plain(theirs), path)
    return json_difference(one.row_count, other.row_count, f"$.{one.name}.row_count")


def _in_streams(first: RunState, second: RunState) -> Iterator[Changed]:
    for name in ("stdout", "stderr"):
        found = text_difference(getattr(first, name), getattr(second, name))
        if found is not None:
            yield Changed("printed", name, found)


def _plain(row: list[Value]) -> list[Any]:
    return [plain_value(value) for value in row]


def _row(row: list[Value] | None) -> str:
    return ABSENT if row is None else json.dumps(_plain(row), ensure_ascii=False)


def _missing_side(first: bool, path: str = "$") -> Difference:
    return Difference(path, "(there)", ABSENT) if first else Difference(path, ABSENT, "(there)")


def _content(item: TreeItem) -> bytes | None:
    try:
        return None if item.content is None else item.content()
    except PlayheadError:
        return None


def _shown(item: TreeItem) -> str:
    entry = item.entry
    return item.why or f"{entry.kind} {entry.mode:o}, {entry.size} bytes{entry.target}"
