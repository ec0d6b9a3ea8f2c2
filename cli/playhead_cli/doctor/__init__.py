"""The checks of ``playhead doctor``, and the lines that they report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedFinding

Mark = Literal["good", "warning", "bad", "off"]


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One line of the report."""

    mark: Mark
    text: str
    hint: str = ""

    def to_json(self) -> PrintedFinding:
        """As an object of plain values."""
        return {"mark": self.mark, "text": self.text, "hint": self.hint or None}
