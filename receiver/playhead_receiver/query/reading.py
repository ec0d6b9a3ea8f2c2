"""A run as it is read: its outline in columns, its transcript, a moment of it, places of a text."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from playhead_receiver.query.lines import run_item, span_lines
from playhead_receiver.query.models.reading import (
    FileThen,
    LastSaid,
    MomentOfRun,
    NamedState,
    Outline,
    TextPlace,
    Transcript,
    TranscriptItem,
)
from playhead_receiver.query.models.spans import Body
from playhead_receiver.query.tree import Tree
from playhead_receiver.store import RunSummary, Store
from playhead_replay import Run
from playhead_replay.moments.moment import RunMoment
from playhead_replay.run.states import State
from playhead_replay.run.steps import Step
from playhead_replay.workspace.trees import TreeItem
from playhead_semconv.errors import PlayheadError, TapeError
from playhead_semconv.genai.messages import plain

FAILED, ATTEMPT = 1, 2
SHOWN_BYTES = 64 * 1024
"""Of a file, and of the end of an output."""
AROUND = 60
"""Characters that are shown before and after a hit."""


def outline_of(store: Store, summary: RunSummary, tree: Tree) -> Outline:
    """All spans of a run in columns."""
    lines = tree.lines(tree.places())
    shown = span_lines(store, bytes.fromhex(summary.trace_id), lines)
    row_of = {line.row.span_id: at for at, line in enumerate(lines)}
    parents = [row_of.get(line.row.parent, -1) if line.depth else -1 for line in lines]
    steps = sorted((line.row.start_ns, line.row.span_id) for line in lines if line.row.label.step)
    number = {span_id: at for at, (_, span_id) in enumerate(steps, 1)}
    names = {name: at for at, name in enumerate(dict.fromkeys(one.name for one in shown))}
    return Outline(
        run=run_item(summary),
        names=list(names),
        span_id=[one.span_id for one in shown],
        parent=parents,
        depth=[line.depth for line in lines],
        below=[line.descendants for line in lines],
        name=[names[one.name] for one in shown],
        start_ns=[line.row.start_ns - summary.started_ns for line in lines],
        duration_ns=[
            -1 if line.row.end_ns is None else max(0, line.row.end_ns - line.row.start_ns)
            for line in lines
        ],
        step=[number.get(line.row.span_id, 0) for line in lines],
        flags=[FAILED * line.row.failed | ATTEMPT * line.row.label.attempt for line in lines],
        input_tokens=[one.input_tokens for one in shown],
        output_tokens=[one.output_tokens for one in shown],
    )


def transcript_of(run: Run) -> Transcript:
    """The conversation of a run.

    A message that a later call of the same lane sends again is not said again: of equal messages a call
    adds as many as it has more than any call before it.
    """
    said: list[TranscriptItem] = []
    left_out: list[str] = []
    known: dict[str, Counter[bytes]] = {}
    for step in run.steps:
        exchanges = run.exchanges_of(step)
        lane = exchanges[0].lane_name if exchanges else ""
        try:
            spoken = list(_spoken(run, step, lane))
        except TapeError as problem:
            left_out.append(f"step {step.number} cannot be read: {problem}")
            continue
        before = known.setdefault(lane, Counter())
        now = Counter[bytes]()
        for one in spoken:
            key = msgspec.json.encode((one.role, one.parts))
            now[key] += 1
            if now[key] > before[key]:
                said.append(one)
        before |= now
    if not said:
        left_out.append(
            "no messages were recorded: record with --level exchanges, or with content in spans"
        )
    return Transcript(run=run.name, trace_id=run.trace_id, said=said, left_out=left_out)


def moment_shown(moment: RunMoment) -> MomentOfRun:
    """A moment of a run."""
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
        states=[
            NamedState(name=name, step=state.step, value=_value(state))
            for name, state in moment.states.items()
        ],
        files=[_file(path, item) for path, item in moment.files.items()],
        stdout=moment.stdout[-SHOWN_BYTES:].decode(errors="replace"),
        stderr=moment.stderr[-SHOWN_BYTES:].decode(errors="replace"),
        left_out=moment.left_out,
    )


def places_of(run: Run, text: str) -> Iterator[TextPlace]:
    """Where a text occurs: in names and errors of spans, then in what was said. Case does not matter."""
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


def _spoken(run: Run, step: Step, lane: str) -> Iterator[TranscriptItem]:
    messages = run.messages(step)
    span = step.span

    def said(kind: Any, role: str, parts: list[dict[str, Any]], time_ns: int) -> TranscriptItem:
        return TranscriptItem(
            step=step.number,
            span_id=span.span_id,
            lane=lane,
            kind=kind,
            role=role,
            time_ns=time_ns,
            parts=parts,
        )

    if messages.system:
        yield said("system", "system", [plain(part) for part in messages.system], span.started_ns)
    if messages.tools:
        yield said("tools", "tools", [plain(tool) for tool in messages.tools], span.started_ns)
    for message in messages.input:
        parts = [plain(part) for part in message.parts]
        yield said("input", str(message.role), parts, span.started_ns)
    for message in messages.output:
        parts = [plain(part) for part in message.parts]
        yield said("output", str(message.role), parts, span.ended_ns or span.started_ns)


def _value(state: State) -> Any:
    try:
        return state.value if state.has_content else None
    except (TapeError, ValueError, RecursionError):
        return None


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
        return Body(text=data.decode())
    except UnicodeDecodeError:
        return Body(base64=base64.b64encode(data).decode())


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
