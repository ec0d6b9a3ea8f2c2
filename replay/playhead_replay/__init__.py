"""From stored spans and a tape to a run: fold, launch, compare, report."""

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
from playhead_replay.runner.configuration import Environment, ReplayConfiguration, ReplayResult, Rules
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
