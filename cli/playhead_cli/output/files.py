"""Files of a run as text and as JSON: its working folder, artifacts and databases."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.columns import in_columns
from playhead_cli.output.styles import ERROR, FAINT, TITLE
from playhead_cli.output.words import count, size
from playhead_core.errors import PlayheadError

if TYPE_CHECKING:
    from playhead_cli.json_output.files import (
        PrintedFile,
        PrintedFileChange,
        PrintedSnapshot,
    )
    from playhead_replay.databases import DatabaseState, Table
    from playhead_replay.workspace.artifacts import Artifact
    from playhead_replay.workspace.history import TreeChange, TreeItem, WorkspaceState
    from playhead_replay.workspace.snapshots import TakenSnapshot


SIGNS = {"added": "A", "removed": "D", "changed": "M", "mode": "m", "unknown": "?"}
MOST_LINES = 200
"""Of the difference of one file."""
MOST_BYTES = 1 << 20
"""Of a file whose lines are compared."""


def workspace_lines(name: str, step: int, found: WorkspaceState) -> Iterator[Text]:
    """Yield the files of a folder, a line each, and notes on unknown files."""
    files = [item for item in found.tree.values() if item.entry.kind != "folder"]
    whole = sum(item.entry.size for item in files)
    yield Text(f"{name}, {_when(step)}: {count(len(files), 'file')}, {size(whole)}", TITLE)
    yield from note_lines(found.notes)
    for path, item in found.tree.items():
        entry = item.entry
        line = Text(
            f"{entry.mode & 0o7777:04o} {size(entry.size):>9}  " if entry.kind == "file" else " " * 16
        )
        line.append(path + ("/" if entry.kind == "folder" else ""))
        if entry.kind == "link":
            line.append(f" → {entry.target}", FAINT)
        if item.why:
            line.append(f"  {item.why}", ERROR)
        yield line


def difference_lines(
    name: str, before: int, after: int, changes: Iterable[TreeChange]
) -> Iterator[Text]:
    """Yield the changed files, a line for each path, and the changed lines of texts."""
    told = list(changes)
    yield Text(f"{name}, from {_when(before)} to {_when(after)}: {count(len(told), 'change')}", TITLE)
    for change in told:
        one, other = change.before, change.after
        shown = other or one
        kind = "file" if shown is None else shown.entry.kind
        line = Text(f"{SIGNS[change.what]} {change.path}{'/' if kind == 'folder' else ''}")
        if change.what == "mode" and one is not None and other is not None:
            line.append(f"  {one.entry.mode & 0o7777:04o} → {other.entry.mode & 0o7777:04o}", FAINT)
        yield line
        yield from _text_lines(one, other)


def note_lines(notes: Iterable[str]) -> Iterator[Text]:
    """Yield notes, a line each."""
    for note in notes:
        yield Text(f"⚠ {note}", ERROR)


def printed_file(item: TreeItem) -> PrintedFile:
    """Return a file for ``--json``."""
    entry = item.entry
    found: PrintedFile = {
        "path": entry.path,
        "kind": entry.kind,
        "mode": entry.mode,
        "size_bytes": entry.size,
        "digest": entry.digest.hex(),
        "inexact": item.why or None,
    }
    if entry.kind == "link":
        found["target"] = entry.target
    return found


def printed_change(change: TreeChange) -> PrintedFileChange:
    """Return a difference for ``--json``."""
    return {
        "path": change.path,
        "what": change.what,
        "before": None if change.before is None else printed_file(change.before),
        "after": None if change.after is None else printed_file(change.after),
    }


def printed_snapshot(taken: TakenSnapshot) -> PrintedSnapshot:
    """Return a snapshot for ``--json``."""
    return {
        "label": taken.label,
        "begun_ns": taken.begun_ns,
        "ended_ns": taken.ended_ns,
        "files": len(taken.tree),
        "size_bytes": taken.size_bytes,
        "changed": taken.changed,
        "kept_bytes": taken.kept_bytes,
    }


def _when(step: int) -> str:
    return f"step {step}" if step else "the start"


def _text_lines(before: TreeItem | None, after: TreeItem | None) -> Iterator[Text]:
    left, right = _lines_of(before), _lines_of(after)
    if left is None or right is None:
        return
    for number, line in enumerate(difflib.unified_diff(left, right, lineterm="", n=1)):
        if number < 2:  # the names of the files
            continue
        if number > MOST_LINES:
            yield Text("  …", FAINT)
            return
        yield Text(f"  {line}", FAINT if line.startswith(("@", " ")) else "")


def _lines_of(item: TreeItem | None) -> list[str] | None:
    """Return the lines of a text; empty for a missing file, None if it is binary or unknown."""
    if item is None:
        return []
    if item.entry.kind != "file" or item.content is None or item.entry.size > MOST_BYTES:
        return None
    try:
        return item.content().decode().splitlines()
    except (UnicodeDecodeError, PlayheadError):
        return None


SHOWN_DIGITS = 12


def artifact_lines(found: Iterable[Artifact]) -> Iterator[Text]:
    """Yield a line each: digest, size, step, name, type."""
    for one in found:
        step = "" if one.step is None else f"step {one.step}"
        line = Text(f"{one.digest[:SHOWN_DIGITS]:{SHOWN_DIGITS}} {size(one.size_bytes):>9}  {step:<9} ")
        line.append(one.name).append(f"  {one.media_type or one.made}", FAINT)
        if one.why:
            line.append(f"  {one.why}", ERROR)
        yield line


SHOWN_ROWS = 10
"""Rows of a table that are shown unless all are wanted."""

PRINTED_ROWS = 100
"""The same with ``--json``."""

MOST_ROWS = 10_000
"""Largest number of rows of a table with ``--all``."""

WIDEST = 32
"""Characters of a value in a column unless all are wanted."""


def database_lines(databases: Iterable[DatabaseState], everything: bool) -> Iterator[Text]:
    """Each database with its tables, for people."""
    for one in databases:
        yield Text()
        line = Text(one.name, TITLE)
        if one.why:
            line.append(f"  {one.why}", ERROR)
        yield line
        tables, problem = one.tables(MOST_ROWS if everything else SHOWN_ROWS)
        if problem and problem != one.why:
            yield Text(f"  {problem}", ERROR)
        for table in tables:
            yield from _table_lines(table, everything)


def _table_lines(table: Table, everything: bool) -> Iterator[Text]:
    head = Text(f"  {table.name}")
    head.append("" if table.row_count is None else f"  {count(table.row_count, 'row')}", FAINT)
    head.append(f"  {table.why}" if table.why else "", ERROR)
    yield head
    if not table.rows:
        return
    rows = [[_shown(value, everything) for value in row] for row in table.rows]
    for number, line in enumerate(in_columns([table.columns, *rows])):
        yield Text(f"    {line}", "" if number else FAINT)
    hidden = (table.row_count or 0) - len(rows)
    if hidden > 0:
        yield Text(f"    {count(hidden, 'row')} more" + ("" if everything else " (--all)"), FAINT)


def _shown(value: object, everything: bool) -> str:
    if isinstance(value, bytes):
        return size(len(value))
    text = "null" if value is None else " ".join(str(value).split())
    return text if everything or len(text) <= WIDEST else text[: WIDEST - 1] + "…"
