"""Rows that engines store for a fact besides its frame."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Fact
from playhead_receiver.storage.content.blobs import Blobs
from playhead_receiver.storage.spans.span_view import STEPS
from playhead_receiver.storage.writing.known_instances import Instance, text_of
from playhead_receiver.storage.writing.prepare import FactRun, consecutive, fact_run
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PROCESS_FACTS = frozenset(
    (
        e.PLAYHEAD_PROCESS_START,
        e.PLAYHEAD_PROCESS_HEARTBEAT,
        e.PLAYHEAD_PROCESS_EXIT,
    )
)
"""Facts of a process about itself."""


def fresh(known: Instance, run: FactRun, blobs: Blobs) -> list[FactRun]:
    """The part of ``run`` that is not stored yet, as runs of consecutive facts."""
    if not known.lasts or run.first > known.lasts[-1]:
        return [run]
    new = [fact for fact in run.facts if not known.has(fact.seq)]
    if len(new) == len(run.facts):
        return [run]
    return [fact_run(facts, blobs) for facts in consecutive(new)]


def part_digest(fact: Fact) -> bytes | None:
    """Digest of the blob to which a blob fact belongs; None if it is invalid."""
    try:
        return bytes.fromhex(text_of(fact, a.PLAYHEAD_BLOB_DIGEST))
    except ValueError:
        return None


def pending_row(known: Instance, fact: Fact) -> tuple[Any, ...]:
    """A row of ``pending``, in the order of its columns, for a span that a process has started."""
    operation = (
        text_of(fact, a.GEN_AI_OPERATION_NAME) or text_of(fact, a.PLAYHEAD_SPAN_NAME).split(" ")[0]
    )
    try:
        parent = bytes.fromhex(text_of(fact, a.PLAYHEAD_SPAN_PARENT))
    except ValueError:
        parent = b""
    return (
        fact.trace_id,
        fact.span_id,
        parent,
        fact.time_ns,
        operation in STEPS,
        text_of(fact, a.GEN_AI_REQUEST_MODEL),
        known.row,
        fact.seq,
    )
