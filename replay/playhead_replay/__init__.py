"""From stored spans and a tape to a run: fold, launch, compare, report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead_core.difference import Difference, body_difference, json_difference, text_difference
    from playhead_replay.report.compare import compare
    from playhead_replay.report.report import Divergence, Report
    from playhead_replay.run.command import Command
    from playhead_replay.run.exchanges import AnswerPart, RecordedExchange, exchanges_of
    from playhead_replay.run.held_tapes import Gap
    from playhead_replay.run.outputs import Outputs
    from playhead_replay.run.run import Run
    from playhead_replay.run.spans import Span, spans_of
    from playhead_replay.run.steps import Step
    from playhead_replay.run.store_shape import StoreLike
    from playhead_replay.run.token_usage import TokenUsage
    from playhead_replay.runner.configuration import (
        Environment,
        ReplayConfiguration,
        ReplayResult,
        Rules,
    )
    from playhead_replay.runner.replaying import Replayer
    from playhead_replay.tape_files.tape_file import (
        TapeFile,
        read_tape_file,
        read_unfinished,
        write_tape_file,
    )

__all__ = [
    "AnswerPart",
    "Command",
    "Difference",
    "Divergence",
    "Environment",
    "Gap",
    "Outputs",
    "RecordedExchange",
    "ReplayConfiguration",
    "ReplayResult",
    "Replayer",
    "Report",
    "Rules",
    "Run",
    "Span",
    "Step",
    "StoreLike",
    "TapeFile",
    "TokenUsage",
    "body_difference",
    "compare",
    "exchanges_of",
    "json_difference",
    "read_tape_file",
    "read_unfinished",
    "spans_of",
    "text_difference",
    "write_tape_file",
]

_PLACES = {
    "playhead_core.difference": (
        "Difference",
        "body_difference",
        "json_difference",
        "text_difference",
    ),
    "playhead_replay.report.compare": ("compare",),
    "playhead_replay.report.report": ("Divergence", "Report"),
    "playhead_replay.run.command": ("Command",),
    "playhead_replay.run.exchanges": ("AnswerPart", "RecordedExchange", "exchanges_of"),
    "playhead_replay.run.held_tapes": ("Gap",),
    "playhead_replay.run.outputs": ("Outputs",),
    "playhead_replay.run.run": ("Run",),
    "playhead_replay.run.spans": ("Span", "spans_of"),
    "playhead_replay.run.steps": ("Step",),
    "playhead_replay.run.store_shape": ("StoreLike",),
    "playhead_replay.run.token_usage": ("TokenUsage",),
    "playhead_replay.runner.configuration": (
        "Environment",
        "ReplayConfiguration",
        "ReplayResult",
        "Rules",
    ),
    "playhead_replay.runner.replaying": ("Replayer",),
    "playhead_replay.tape_files.tape_file": (
        "TapeFile",
        "read_tape_file",
        "read_unfinished",
        "write_tape_file",
    ),
}


def __getattr__(name: str) -> Any:
    """Import the name that is asked for. A command that shows a run loads nothing that replays one."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
