"""Views of a run: outline in columns, transcript, state at a step, matches of a text."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from playhead_core.boundaries import had, unkept
from playhead_core.errors import PlayheadError, TapeError
from playhead_core.tape.folds import level_of
from playhead_genai.messages import plain
from playhead_genai.prices import cost_of as price
from playhead_receiver.api.lines import pending_names
from playhead_receiver.api.models.reading import (
    CheckpointThen,
    FileThen,
    Kept,
    LastSaid,
    MomentOfRun,
    Outline,
    TextPlace,
    Transcript,
    TranscriptItem,
)
from playhead_receiver.api.tree import Tree
from playhead_receiver.queries.run_items import run_items
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.runs.costs import NANO, cost_of
from playhead_receiver.storage.values.span_labels import SpanRow
from playhead_replay import Run
from playhead_replay.json_objects.recorded import Body
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.steps import Step
from playhead_replay.run.token_usage import TokenUsage, sum_of
from playhead_replay.timeline import RunState, checkpoints_of
from playhead_replay.workspace.history import TreeItem
from playhead_semconv import events as e

FAILED, ATTEMPT = 1, 2
SHOWN_BYTES = 64 * 1024
"""Largest size of a shown file, and of the shown end of an output."""
NOTHING_USED = TokenUsage()
AROUND = 60
"""Characters that are shown before and after a hit."""


def outline_of(store: Store, summary: RunSummary, tree: Tree, limit: int | None = None) -> Outline:
    """The spans of a run in columns; the first ``limit`` of them."""
    rows = tree.rows[:limit]
    names = _names(store, summary, tree, rows)
    place = {name: at for at, name in enumerate(dict.fromkeys(names))}
    number = tree.step_numbers
    return Outline.model_construct(  # unvalidated: the values are ours, and there may be many
        run=run_items(store, [summary])[0],
        spans=len(tree.rows),
        names=list(place),
        span_id=[row.span_id.hex() for row in rows],
        parent=tree.parents[:limit],
        depth=tree.depths[:limit],
        below=tree.descendants[:limit],
        name=[place[name] for name in names],
        start_ns=[row.start_ns - summary.started_ns for row in rows],
        duration_ns=[-1 if row.end_ns is None else max(0, row.end_ns - row.start_ns) for row in rows],
        step=[number.get(row.span_id, 0) for row in rows],
        flags=[
            FAILED * row.failed | ATTEMPT * (row.label.attempt and row.span_id not in number)
            for row in rows
        ],
        input_tokens=[row.usage.input for row in rows],
        output_tokens=[row.usage.output for row in rows],
        cost_usd=[_cost(row) for row in rows],
    )


def _cost(row: SpanRow) -> float | None:
    if not row.usage or row.label.played:
        return None
    cost, _ = cost_of([(row.label, row.usage, row.start_ns)])
    return None if cost is None else cost / NANO


def kept_of(store: Store, summary: RunSummary) -> Kept:
    """What the recording of a run contains, by its first process."""
    for instance in summary.instances:
        facts = store.tape_of(bytes.fromhex(instance), bytes.fromhex(summary.trace_id)).facts()
        start = next((one for one in facts if one.name == e.PLAYHEAD_PROCESS_START), None)
        if start is not None:
            level = level_of([start])
            return Kept(level=level, not_kept=unkept(had(start.attributes), level))
    return Kept(level=None, not_kept={})


def _names(store: Store, summary: RunSummary, tree: Tree, rows: Sequence[SpanRow]) -> list[str]:
    """Names of the first rows of a tree. Those of all rows are kept with it."""
    trace_id = bytes.fromhex(summary.trace_id)
    found = tree.names
    if found is None:
        whole = len(rows) == len(tree.rows)
        found = store.names(trace_id, None if whole else [row.span_id for row in rows])
        if whole:
            tree.names = found
    if any(row.end_ns is None for row in rows):
        found = {**pending_names(store, trace_id), **found}
    return [found.get(row.span_id, "") for row in rows]


class _Lane:
    """Messages of a lane so far."""

    def __init__(self) -> None:
        self.history = GrowingHistory()
        self.sent = Counter[bytes]()
        """Messages of the last call's input."""
        self.most = Counter[bytes]()
        """For each message, its largest number of occurrences in one call."""


def transcript_of(run: Run) -> Transcript:
    """The conversation of a run.

    A message that a later call of the same lane repeats is left out: of equal messages a call adds as
    many as it has more than any earlier call.
    """
    said: list[TranscriptItem] = []
    left_out: list[str] = []
    lanes: dict[str, _Lane] = {}
    for step in run.steps:
        exchanges = run.exchanges_of(step)
        name = exchanges[0].lane_name if exchanges else ""
        lane = lanes.setdefault(name, _Lane())
        try:
            spoken = list(_spoken(run, step, name, lane.history))
        except TapeError as problem:
            left_out.append(f"step {step.number} cannot be read: {problem}")
            lane.history = GrowingHistory()
            continue
        if not lane.history.goes_on:
            lane.sent.clear()
        others = Counter[bytes]()
        for one in spoken:
            key = msgspec.json.encode((one.role, one.parts))
            (lane.sent if one.kind == "input" else others)[key] += 1
            times = lane.sent[key] + others[key]
            if times > lane.most[key]:
                lane.most[key] = times
                said.append(one)
    if not said:
        left_out.append(
            "no messages were recorded: record with --level exchanges, or with content in spans"
        )
    return Transcript(run=run.name, trace_id=run.trace_id, said=said, left_out=left_out)


def last_state(run: Run) -> int:
    """The last step that changed a state or made a checkpoint; the last step if none did."""
    reported = [one.step for one in (*run.states, *checkpoints_of(run))]
    return max(reported, default=0) or len(run.steps)


def moment_shown(moment: RunState, rows: int) -> MomentOfRun:
    """The state of a run at a step, with the first ``rows`` rows of each database table."""
    run = moment.run
    return MomentOfRun(
        run=run.name,
        trace_id=run.trace_id,
        step=moment.step,
        steps=len(run.steps),
        time_ns=moment.time_ns,
        conversations=[
            LastSaid(
                lane=one.lane,
                step=one.step.number,
                answered=one.answered,
                system_instructions=[plain(part) for part in one.messages.system],
                input_messages=[plain(message) for message in one.messages.input],
                output_messages=[plain(message) for message in one.messages.output],
            )
            for one in moment.conversations
        ],
        states=[state.to_json(name) for name, state in moment.states.items()],
        files=[_file(path, item) for path, item in moment.files.items()],
        databases=[one.to_json(rows) for one in moment.databases],
        checkpoints=[
            CheckpointThen(
                name=one.name,
                kind=one.kind,
                label=one.label,
                step=one.step,
                time_ns=one.time_ns,
                states=list(one.states),
            )
            for one in checkpoints_of(run)
            if one.step <= moment.step
        ],
        stdout=moment.stdout[-SHOWN_BYTES:].decode(errors="replace"),
        stderr=moment.stderr[-SHOWN_BYTES:].decode(errors="replace"),
        left_out=moment.left_out,
    )


def places_of(run: Run, text: str) -> Iterator[TextPlace]:
    """Find a text in names and errors of spans, then in messages, ignoring case."""
    wanted = re.compile(re.escape(text), re.IGNORECASE)
    owners: dict[str, int] = {}
    for step in run.steps:
        for span in step.span.walk():
            owners[span.span_id] = step.number
    for span in run.spans:
        for where, held in (("name", span.name), ("error", span.error)):
            yield from _hits(held or "", wanted, owners.get(span.span_id, 0), span.span_id, where)
    for one in transcript_of(run).said:
        held = "\n".join(_texts(one.parts))
        yield from _hits(held, wanted, one.step, one.span_id, one.kind)


def _spoken(run: Run, step: Step, lane: str, history: GrowingHistory) -> Iterator[TranscriptItem]:
    messages = run.messages(step, history)
    span = step.span

    def said(
        kind: Any,
        role: str,
        parts: list[dict[str, Any]],
        time_ns: int,
        usage: TokenUsage = NOTHING_USED,
    ) -> TranscriptItem:
        used = usage != NOTHING_USED
        return TranscriptItem(
            step=step.number,
            span_id=span.span_id,
            lane=lane,
            kind=kind,
            role=role,
            time_ns=time_ns,
            parts=parts,
            input_tokens=usage.input_tokens if used else None,
            output_tokens=usage.output_tokens if used else None,
            cost_usd=price([(span.attributes, span.started_ns)]).known_usd if used else None,
        )

    if messages.system:
        yield said("system", "system", [plain(part) for part in messages.system], span.started_ns)
    if messages.tools:
        yield said("tools", "tools", [plain(tool) for tool in messages.tools], span.started_ns)
    for message in messages.input:
        parts = [plain(part) for part in message.parts]
        yield said("input", str(message.role), parts, span.started_ns)
    for number, message in enumerate(messages.output):
        parts = [plain(part) for part in message.parts]
        usage = NOTHING_USED if number else sum_of([span])
        yield said("output", str(message.role), parts, span.ended_ns or span.started_ns, usage)


def _file(path: str, item: TreeItem) -> FileThen:
    content = None
    if item.content is not None and item.entry.size <= SHOWN_BYTES:
        with contextlib.suppress(PlayheadError):
            content = _body(item.content())
    return FileThen(
        path=path,
        kind=item.entry.kind,
        size_bytes=item.entry.size,
        content=content,
        inexact=item.why or None,
    )


def _body(data: bytes) -> Body:
    try:
        return {"text": data.decode(), "base64": None}
    except UnicodeDecodeError:
        return {"text": None, "base64": base64.b64encode(data).decode()}


def _texts(parts: Sequence[Any]) -> Iterator[str]:
    for part in parts:
        for name, value in part.items():
            if name != "type" and value is not None:
                yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _hits(
    held: str, wanted: re.Pattern[str], step: int, span_id: str, where: str
) -> Iterator[TextPlace]:
    found = wanted.search(held)
    if found is not None:
        begin, end = found.span()
        yield TextPlace(
            step=step,
            span_id=span_id,
            where=where,
            before=held[max(0, begin - AROUND) : begin],
            hit=found[0],
            after=held[end : end + AROUND],
        )
