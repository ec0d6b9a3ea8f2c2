"""SQLite databases of a moment: their tables as lines, and as objects of plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.styles import ERROR, FAINT, TITLE
from playhead_cli.output.words import count, size
from playhead_replay.databases import plain_value, tables_of

if TYPE_CHECKING:
    from playhead_cli.json_output.moments import PrintedDatabase, PrintedTable
    from playhead_replay.databases import DatabaseState, Table

SHOWN_ROWS = 10
"""Rows of a table that are shown unless all are wanted."""

MOST_ROWS = 10_000
"""Rows of a table where all are wanted."""

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
        tables, problem = _tables(one, MOST_ROWS if everything else SHOWN_ROWS)
        if problem and problem != one.why:
            yield Text(f"  {problem}", ERROR)
        for table in tables:
            yield from _table_lines(table, everything)


def database_object(database: DatabaseState, everything: bool = False) -> PrintedDatabase:
    """A database as plain values."""
    tables, problem = _tables(database, MOST_ROWS if everything else 100)
    return {
        "path": database.name,
        "tables": [_table_object(table) for table in tables],
        "inexact": problem or database.why or None,
    }


def _tables(database: DatabaseState, most_rows: int) -> tuple[list[Table], str]:
    if database.image is None:
        return [], database.why
    try:
        return tables_of(database.image, most_rows), ""
    except ValueError as problem:
        return [], str(problem)


def _table_object(table: Table) -> PrintedTable:
    return {
        "name": table.name,
        "columns": table.columns,
        "rows": [[plain_value(value) for value in row] for row in table.rows],
        "row_count": table.row_count,
        "left_out": table.why or None,
    }


def _table_lines(table: Table, everything: bool) -> Iterator[Text]:
    head = Text(f"  {table.name}")
    head.append("" if table.row_count is None else f"  {count(table.row_count, 'row')}", FAINT)
    head.append(f"  {table.why}" if table.why else "", ERROR)
    yield head
    if not table.rows:
        return
    rows = [[_shown(value, everything) for value in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
    yield Text("    " + _line(table.columns, widths), FAINT)
    for row in rows:
        yield Text("    " + _line(row, widths))
    hidden = (table.row_count or 0) - len(rows)
    if hidden > 0:
        yield Text(f"    {count(hidden, 'row')} more" + ("" if everything else " (--all)"), FAINT)


def _line(values: list[str], widths: list[int]) -> str:
    return "  ".join(value.ljust(width) for value, width in zip(values, widths, strict=True)).rstrip()


def _shown(value: object, everything: bool) -> str:
    if isinstance(value, bytes):
        return size(len(value))
    text = "null" if value is None else " ".join(str(value).split())
    return text if everything or len(text) <= WIDEST else text[: WIDEST - 1] + "…"
