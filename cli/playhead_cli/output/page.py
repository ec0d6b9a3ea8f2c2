"""A comparison as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from playhead_cli.output.comparison import ranges
from playhead_cli.output.words import took
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_replay.diff import RunDiff

TEMPLATE = Path(__file__).with_name("diff.html")


def diff_page(found: RunDiff) -> str:
    """The comparison of two runs as HTML; content of the runs is escaped."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    rows = [
        {"left": left, "right": right, "differences": found.of(*numbers)}
        for left, right in found.pairs
        for numbers in [
            (left.number if left is not None else None, right.number if right is not None else None)
        ]
    ]
    durations = ["running" if one.duration_ns is None else took(one.duration_ns) for one in found.totals]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        diff=found, rows=rows, same=ranges(found.same), durations=durations
    )


def _shown(value: object) -> object:
    """The value with characters that hide or reverse text in a page made visible."""
    return visible(value) if isinstance(value, str) else value
