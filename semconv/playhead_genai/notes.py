"""Notes: what a person says about a run or a step, sent and stored as the result of an evaluation.

A receiver stores a note like the score of any evaluator, so it is listed, searched, exported and
forwarded with the scores. Nothing stored changes: a note is withdrawn by a second record.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from playhead_core.errors import UsageError
from playhead_core.otlp import set_attributes
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PLAIN: Final = "note"
"""Name of the score of a note that has only a text."""
CORRECT: Final = "correct"
"""Name of the score of a step that a person marks as right or wrong."""
LABELS: Final = {"right": 1.0, "wrong": 0.0}
"""Its labels, with their values."""
_SCOPE: Final = "playhead.notes"
_EVALUATOR: Final = "gen_ai.evaluation.evaluator.name"
_INFO: Final = 9


class RunNote(msgspec.Struct, frozen=True):
    """A note of a person."""

    text: str = ""
    name: str = PLAIN
    """Name of the score."""
    value: float | None = None
    label: str = ""
    author: str = ""
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(16))
    time_ns: int = msgspec.field(default_factory=time.time_ns)


def note_of(
    text: str, author: str, *, name: str = "", value: float | None = None, label: str = ""
) -> RunNote:
    """Return a note; a label implies name and value of its score. `UsageError` if it says nothing.

    >>> note_of("", "ann", label="wrong").value
    0.0
    """
    if label and not name:
        name, value = CORRECT, LABELS[label] if value is None else value
    if value is not None and not name:
        raise UsageError("a score needs a name")
    if not text.strip() and not label and value is None:
        raise UsageError("a note needs a text, a score, or right or wrong")
    return RunNote(text, name or PLAIN, value, label, author)


def request_of(note: RunNote, trace_id: str, span_id: str = "") -> bytes:
    """Return the OTLP request that stores a note. ``span_id``: of the step; empty: for the run."""
    attributes = {
        a.GEN_AI_EVALUATION_NAME: note.name,
        a.GEN_AI_EVALUATION_SCORE_VALUE: note.value,
        a.GEN_AI_EVALUATION_SCORE_LABEL: note.label or None,
        a.GEN_AI_EVALUATION_EXPLANATION: note.text or None,
        _EVALUATOR: note.author or None,
        a.PLAYHEAD_NOTE_ID: note.id,
    }
    return _request(e.GEN_AI_EVALUATION_RESULT, note.time_ns, trace_id, span_id, attributes)


def withdrawal_of(note_id: str, trace_id: str, author: str) -> bytes:
    """Return the OTLP request that withdraws a note."""
    attributes = {a.PLAYHEAD_NOTE_ID: note_id, _EVALUATOR: author or None}
    return _request(e.PLAYHEAD_NOTE_WITHDRAWN, time.time_ns(), trace_id, "", attributes)


def _request(event: str, time_ns: int, trace_id: str, span_id: str, attributes: dict[str, Any]) -> bytes:
    request = ExportLogsServiceRequest()
    scoped = request.resource_logs.add().scope_logs.add()
    scoped.scope.name = _SCOPE
    record = scoped.log_records.add(
        time_unix_nano=time_ns,
        severity_number=_INFO,  # type: ignore[arg-type]
        event_name=event,
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id),
    )
    set_attributes(record.attributes, {name: one for name, one in attributes.items() if one is not None})
    return request.SerializeToString()
