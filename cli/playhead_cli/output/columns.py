"""Aligns cells by their width in a terminal, where Chinese characters take two columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Pad a text with spaces to a width.

    >>> padded("退款", 6) + "|", padded("7", 3, right=True)
    ('退款  |', '  7')
    """
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def width_of(text: str) -> int:
    """Return the number of columns that a text takes in a terminal."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column. All rows have the same number of cells."""
    return [max(map(width_of, column)) for column in zip(*rows, strict=True)]


def in_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return a line for each row. ``right``: columns that are aligned to the right.

    >>> in_columns([("NAME", "STEPS"), ("refund-7", "12")])
    ['NAME      STEPS', 'refund-7  12']
    """
    widths = widths_of(rows)
    return [
        "  ".join(padded(cell, widths[at], right=at in right) for at, cell in enumerate(row)).rstrip()
        for row in rows
    ]
