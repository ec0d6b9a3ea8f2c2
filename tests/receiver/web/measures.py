"""What is measured of pages, by scripts that run in them; times are in ms."""

from __future__ import annotations

import json

from .views import PICTURES

FIGURES = PICTURES.parent / "pages.json"


def note(what: str, figures: dict[str, float]) -> None:
    """Keep figures in logs/pages.json, beside those of other measurements."""
    known = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    FIGURES.parent.mkdir(exist_ok=True)
    rounded = {name: round(value, 3) for name, value in figures.items()}
    FIGURES.write_text(json.dumps({**known, what: rounded}, indent=1) + "\n", "utf-8")


def share(of: list[float], part: float) -> float:
    """The value below which this part of all lies."""
    ordered = sorted(of)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]
