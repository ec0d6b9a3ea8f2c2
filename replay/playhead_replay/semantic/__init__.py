"""Replays runs that are known only from spans: model calls are answered by rebuilt answers."""

from playhead_replay.semantic.program import command_of, has_program, named_program, with_program
from playhead_replay.semantic.rebuilt_runs import rebuilt_for_fork, rebuilt_for_golden
from playhead_replay.semantic.replaying import SemanticResult, replay_spans
from playhead_replay.semantic.report import AnsweredRequest, SemanticReport, semantic_junit_xml

__all__ = [
    "AnsweredRequest",
    "SemanticReport",
    "SemanticResult",
    "command_of",
    "has_program",
    "named_program",
    "rebuilt_for_fork",
    "rebuilt_for_golden",
    "replay_spans",
    "semantic_junit_xml",
    "with_program",
]
