"""From stored spans and a tape to a run: fold, launch, compare, report."""

from playhead_replay.command import Command
from playhead_replay.compare import compare
from playhead_replay.exchanges import Chunk, RecordedExchange, exchanges_of
from playhead_replay.launch import Replay, replay
from playhead_replay.outputs import Outputs
from playhead_replay.report import Divergence, Report
from playhead_replay.run import Gap, Run, StoreLike, Usage
from playhead_replay.spans import Span, spans_of
from playhead_replay.steps import Step
from playhead_replay.tapefile import TapeFile, read_tape_file, read_unfinished, write_tape_file
from playhead_semconv.difference import Difference, body_difference, json_difference, text_difference

__all__ = [
    "Chunk",
    "Command",
    "Difference",
    "Divergence",
    "Gap",
    "Outputs",
    "RecordedExchange",
    "Replay",
    "Report",
    "Run",
    "Span",
    "Step",
    "StoreLike",
    "TapeFile",
    "Usage",
    "body_difference",
    "compare",
    "exchanges_of",
    "json_difference",
    "read_tape_file",
    "read_unfinished",
    "replay",
    "spans_of",
    "text_difference",
    "write_tape_file",
]
