"""The body of a request or an answer as people read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from rich.text import Text

from playhead_cli.output.message_text import text_in
from playhead_cli.output.styles import FAINT
from playhead_cli.output.words import FOLD, count, size

LINE_CHARS = 96
"""Longest JSON that is written in one line."""
MOST_LINES = 40
"""Lines of a body that are shown without ``--all``."""
FORM = "application/x-www-form-urlencoded"


def body_lines(data: bytes, media_type: str = "", everything: bool = False) -> Iterator[Text]:
    """Yield the lines of a body, as `text_lines`; binary data is described."""
    text = text_in(data)
    if text is not None:
        yield from text_lines(text, media_type, everything)
    else:
        yield Text(f"  {size(len(data))} that are no text: {data[:32].hex(' ')}…")


def text_lines(text: str, media_type: str = "", everything: bool = False) -> Iterator[Text]:
    """Indented lines: JSON in one line if it is short, a form a field a line, other text as it is.

    ``everything``: however many there are.
    """
    shown = _form(text) if media_type.startswith(FORM) else _json(text)
    lines = (text if shown is None else shown).splitlines()
    hidden = 0 if everything else len(lines) - MOST_LINES
    if hidden <= 1:
        hidden = 0
    yield from (Text(f"  {line}") for line in lines[: len(lines) - hidden])
    if hidden:
        yield Text(f"  {FOLD} {count(hidden, 'more line')} (--all)", FAINT)


def _json(text: str) -> str | None:
    try:
        value: Any = json.loads(text)
        short = json.dumps(value, ensure_ascii=False)
        if len(short) <= LINE_CHARS:
            return short
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _form(text: str) -> str | None:
    try:
        return "\n".join(f"{name}={value}" for name, value in parse_qsl(text, keep_blank_values=True))
    except ValueError:
        return None
