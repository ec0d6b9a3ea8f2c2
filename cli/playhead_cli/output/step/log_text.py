"""A log record in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from playhead_cli.output.styles import ERROR, FAINT, TITLE
from playhead_cli.output.words import offset, one_line
from playhead_core.otlp.log_records import EVENT_NAME, LEVELS, level_name
from playhead_genai.readable_text import text_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.otlp.log_records import LogLine
    from playhead_replay import Run

LONGEST = 300
"""Most characters of a body or a value."""
_SCORE: Final = (
    a.GEN_AI_EVALUATION_NAME,
    a.GEN_AI_EVALUATION_SCORE_VALUE,
    a.GEN_AI_EVALUATION_SCORE_LABEL,
    a.GEN_AI_EVALUATION_EXPLANATION,
)


def log_text(run: Run, line: LogLine) -> Text:
    """Return time, level, source and text of a record; of an evaluation, its score."""
    style = (
        ERROR if line.level >= LEVELS["error"] else "yellow" if line.level >= LEVELS["warning"] else ""
    )
    text = Text(f"  {offset(line.time_ns - run.started_ns):>9}  ", FAINT)
    text.append(f"{level_name(line.level):<8}", style)
    rest = {name: value for name, value in line.attributes.items() if name != EVENT_NAME}
    if line.event:
        text.append(line.event, TITLE)
    elif line.logger:
        text.append(f"{line.logger}:", FAINT)
    if line.event == e.GEN_AI_EVALUATION_RESULT:
        scored = [text_of(rest.pop(name)) for name in _SCORE if name in rest]
        text.append(f" {one_line(' '.join(scored), LONGEST)}")
    if line.body is not None:
        text.append(f" {one_line(text_of(line.body), LONGEST)}")
    for name, value in sorted(rest.items()):
        text.append(f"  {name}: {one_line(text_of(value), LONGEST)}", FAINT)
    return text
