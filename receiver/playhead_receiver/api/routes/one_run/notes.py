"""``/v1/runs/{run}/notes``: what people say about a run and its steps."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from playhead_core.errors import UsageError
from playhead_genai.notes import note_of, request_of, withdrawal_of
from playhead_genai.scores import Score
from playhead_receiver.api.context import Controlling, Reading, RequestContext, RunName
from playhead_receiver.api.models.runs import NoteItem, NoteOrder, RunNotes
from playhead_receiver.api.problems import NotFound
from playhead_receiver.auth import Forbidden
from playhead_replay import Run

router = APIRouter(tags=["runs"])

NoteId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.get("/v1/runs/{run}/notes")
def list_run_notes(context: Reading, run: RunName) -> RunNotes:
    """List the notes about a run and its steps, by time."""
    return _notes(context, context.read(run))


@router.post("/v1/runs/{run}/notes")
def add_note(context: Controlling, run: RunName, order: NoteOrder) -> RunNotes:
    """Add a note: a text, a score, or right or wrong. It is stored as a `gen_ai.evaluation.result`."""
    summary = context.run(run)
    trace_id, span_id = summary.trace_id, ""
    if order.step is not None:
        step = context.load(summary).step(order.step)
        if step is None:
            raise UsageError(f"{summary.name} has no step {order.step}", hint=f"playhead show {run}")
        span_id = step.span.span_id
    note = note_of(
        order.text,
        context.caller.name or order.author,
        name=order.name,
        value=order.value,
        label=order.label or "",
    )
    context.note("mark", trace_id)
    context.services.intake.export("logs", request_of(note, trace_id, span_id))
    return _notes(context, context.load(summary))


@router.delete("/v1/runs/{run}/notes/{note}")
def withdraw_note(context: Controlling, run: RunName, note: NoteId) -> RunNotes:
    """Withdraw an own note; with the scope `admin`, any note. Its record stays in the store."""
    summary = context.run(run)
    trace_id, notes = summary.trace_id, _notes(context, context.load(summary)).notes
    found = next((one for one in notes if one.id == note), None)
    if found is None:
        raise NotFound("no such note", hint=f"GET /v1/runs/{run}/notes")
    if not found.own:
        raise Forbidden(
            "the note is of another author", hint="a token with the scope admin withdraws it"
        )
    context.note("mark", trace_id)
    context.services.intake.export("logs", withdrawal_of(note, trace_id, context.caller.name))
    return _notes(context, context.load(summary))


def _notes(context: RequestContext, run: Run) -> RunNotes:
    notes = [one for one in run.scores if one.note_id]
    steps = run.steps_of_spans() if notes else {}
    return RunNotes(notes=[_item(context, one, steps.get(one.span_id)) for one in notes])


def _item(context: RequestContext, note: Score, step: int | None) -> NoteItem:
    caller = context.caller
    return NoteItem(
        id=note.note_id,
        step=step,
        span_id=note.span_id or None,
        text=note.explanation,
        name=note.name,
        value=note.value,
        label=note.label or None,
        author=note.evaluator,
        time_ns=note.time_ns,
        own=caller.may("admin") or (caller.may("control") and note.evaluator == caller.name),
    )
