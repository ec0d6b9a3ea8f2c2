"""The state at a step: as lines, and as an object of plain values."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.files import MOST_ROWS, PRINTED_ROWS, database_lines, printed_file
from playhead_cli.output.step.bodies import text_lines
from playhead_cli.output.step.conversation import answered_lines, asked_lines
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, TITLE
from playhead_cli.output.words import count, label, offset, size
from playhead_core.errors import PlayheadError, TapeError
from playhead_genai.messages import plain

if TYPE_CHECKING:
    from playhead_cli.json_output.moments import (
        PrintedChange,
        PrintedFact,
        PrintedFileThen,
        PrintedLastMessages,
        PrintedMomentChanges,
        PrintedOutput,
        PrintedRunMoment,
    )
    from playhead_replay import Run
    from playhead_replay.json_objects.recorded import StoredCheckpoint
    from playhead_replay.run.states import State
    from playhead_replay.timeline import LastMessages, MarkedCheckpoint, RunState
    from playhead_replay.timeline.run_state_difference import Changed
    from playhead_replay.workspace.history import TreeItem

LAST_LINES = 10
"""Lines of printed output that are shown without ``--all``."""

SHOWN_BYTES = 1 << 20
"""Of a file that is printed with its content; ``playhead workspace --to`` restores any."""


def moment_lines(moment: RunState, everything: bool = False) -> Iterator[Text]:
    """Yield the state at a step as lines."""
    run = moment.run
    head = Text(f"{run.name}:{moment.step} ", style=NUMBER)
    step = run.step(moment.step)
    head.append("before the first step" if step is None else label(step.span), style=TITLE)
    head.append(f"  {offset(moment.time_ns - run.started_ns)}", style=FAINT)
    yield head
    for number, one in enumerate(moment.conversations):
        if number and not everything:
            others = count(len(moment.conversations) - 1, "other conversation")
            yield Text()
            yield Text(f"{others} in other threads or tasks (--all)", FAINT)
            break
        yield from _conversation(one, everything, len(moment.conversations) > 1)
    for name, state in moment.states.items():
        yield Text()
        yield Text(name, TITLE)
        yield from text_lines(_said(state), "", everything)
        for one in _unkept(state):
            yield Text(f"  not kept: {one}", ERROR)
    if moment.files:
        yield Text()
        yield Text("files", TITLE)
        for path, item in moment.files.items():
            if item.entry.kind != "folder":
                line = Text(f"  {path}  {size(item.entry.size)}")
                line.append(f"  {item.why}" if item.why else "", ERROR)
                yield line
    yield from database_lines(moment.databases, everything)
    for name in ("stdout", "stderr"):
        data: bytes = getattr(moment, name)
        if data:
            yield Text()
            yield from _printed(name, data, everything)
    for sentence in moment.left_out:
        yield Text()
        yield Text(sentence, FAINT)


def checkpoint_lines(
    run: Run, found: list[MarkedCheckpoint], sent: Sequence[StoredCheckpoint] = ()
) -> Iterator[Text]:
    """Checkpoints, a line each; ``sent``: those that no tape reports."""
    for one in found:
        line = Text(f"{one.name:<5}", NUMBER)
        line.append(f"{offset(one.time_ns - run.started_ns):>8}  ", FAINT)
        line.append(f"step {one.step:<4}", "")
        line.append(f"  {one.kind:<9}", FAINT)
        line.append(f"  {one.label}" if one.label else "", TITLE)
        line.append(f"  {', '.join(one.states)}" if one.states else "", "")
        if one.stored is not None:
            line.append(f"  {one.stored.id}  {one.stored.thread} {one.stored.name}", FAINT)
        yield line
    for other in sent:
        line = Text("sent ", NUMBER)
        line.append(f"{offset(other['time_ns'] - run.started_ns):>8}  ", FAINT)
        line.append(f"{size(other['size_bytes']):<9}", FAINT)
        line.append(f"  {', '.join(other['labels'])}" if other["labels"] else "", TITLE)
        line.append(f"  {other['id']}  {other['thread']} {other['name']}".rstrip(), FAINT)
        yield line
    if not found and not sent:
        yield Text(f"{run.name} has no checkpoints; a program makes one with playhead.checkpoint()")


def fact_lines(run: Run, facts: Iterable[PrintedFact]) -> Iterator[Text]:
    """Facts, a line each."""
    for one in facts:
        line = Text(f"{one['seq']:>6}", NUMBER)
        line.append(f"{offset(one['time_ns'] - run.started_ns):>9}  ", FAINT)
        line.append(one["name"], TITLE)
        line.append(f"  {one['exchange']}" if one["exchange"] else "", "")
        line.append(f"  step {one['step']}" if one["step"] else "", FAINT)
        line.append(f"  {size(one['size_bytes'])}" if one["size_bytes"] else "", FAINT)
        yield line


def change_lines(changes: list[Changed]) -> Iterator[Text]:
    """Yield the changes between two moments, as lines for people."""
    for one in changes:
        yield Text(f"{one.kind} {one.name}  {one.difference.path}", TITLE)
        yield Text(f"- {one.difference.tape}")
        yield Text(f"+ {one.difference.now}")
    if not changes:
        yield Text("nothing differs")


def moment_object(moment: RunState, everything: bool = False) -> PrintedRunMoment:
    """Return the state at a step as plain values."""
    return {
        "schema_version": 1,
        "run": moment.run.name,
        "trace_id": moment.run.trace_id,
        "step": moment.step,
        "time_ns": moment.time_ns,
        "conversations": [_conversation_object(one) for one in moment.conversations],
        "states": [one.to_json(name) for name, one in moment.states.items()],
        "files": [_file_object(one) for one in moment.files.values()],
        "databases": [
            one.to_json(MOST_ROWS if everything else PRINTED_ROWS) for one in moment.databases
        ],
        "stdout": _output_object(moment.stdout),
        "stderr": _output_object(moment.stderr),
        "left_out": moment.left_out,
    }


def changes_object(first: RunState, second: RunState, changes: list[Changed]) -> PrintedMomentChanges:
    """Return the changes between two moments, as plain values."""
    return {
        "schema_version": 1,
        "left": f"{first.run.name}:{first.step}",
        "right": f"{second.run.name}:{second.step}",
        "changes": [_change_object(one) for one in changes],
    }


def _conversation(one: LastMessages, everything: bool, several: bool) -> Iterator[Text]:
    yield Text()
    where = f", {one.lane}" if several and one.lane else ""
    yield Text(f"conversation of step {one.step.number}{where}", TITLE)
    yield from asked_lines(one.messages, everything)
    yield from answered_lines(one.messages, everything)
    if not one.answered:
        yield Text("not answered yet", FAINT)


def _printed(name: str, data: bytes, everything: bool) -> Iterator[Text]:
    lines = data.decode(errors="replace").splitlines()
    shown = lines if everything else lines[-LAST_LINES:]
    yield Text(name, TITLE)
    if len(shown) < len(lines):
        yield Text(f"  {count(len(lines) - len(shown), 'earlier line')} (--all)", FAINT)
    for line in shown:
        yield Text(f"  {line}")


def _said(state: State) -> str:
    try:
        return json.dumps(state.value, ensure_ascii=False) if state.has_content else ""
    except (TapeError, ValueError, RecursionError) as problem:
        return f"cannot be read: {problem}"


def _unkept(state: State) -> list[str]:
    try:
        return state.unkept
    except (TapeError, ValueError, RecursionError):
        return []


def _conversation_object(one: LastMessages) -> PrintedLastMessages:
    return {
        "lane": one.lane,
        "step": one.step.number,
        "answered": one.answered,
        "system_instructions": [plain(part) for part in one.messages.system],
        "input_messages": [plain(message) for message in one.messages.input],
        "output_messages": [plain(message) for message in one.messages.output],
        "tool_definitions": [plain(tool) for tool in one.messages.tools],
    }


def _file_object(item: TreeItem) -> PrintedFileThen:
    data: bytes | None = None
    if item.content is not None and item.entry.size <= SHOWN_BYTES:
        with contextlib.suppress(PlayheadError):
            data = item.content()
    return {**printed_file(item), "data": _output_object(data)}


def _output_object(data: bytes | None) -> PrintedOutput | None:
    if data is None:
        return None
    try:
        return {"encoding": "utf-8", "text": data.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "text": base64.b64encode(data).decode()}


def _change_object(one: Changed) -> PrintedChange:
    return {
        "kind": one.kind,
        "name": one.name,
        "path": one.difference.path,
        "left": one.difference.tape,
        "right": one.difference.now,
    }
