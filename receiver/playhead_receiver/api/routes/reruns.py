"""``/v1/reruns``: start, follow and cancel replays and forks on this machine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, TypeAlias, cast

import anyio
from fastapi import APIRouter, Depends, Path, Query, Request

from playhead_core.errors import UsageError
from playhead_core.rerun.edits import between, steps_of
from playhead_core.rerun.plans import Edit
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.api.context import Controlling, Reading, RequestContext, RunName, serving_of
from playhead_receiver.api.models.reruns import (
    EditableRequest,
    ForkOrder,
    ReplayOrder,
    RerunItem,
    RerunList,
    RerunProblem,
    RerunState,
)
from playhead_receiver.api.problems import NotFound
from playhead_receiver.auth import Forbidden
from playhead_receiver.reruns.child import Ordered, Rerun
from playhead_receiver.reruns.reruns import NotExecuted, Reruns
from playhead_receiver.storage import Query as RunQuery
from playhead_replay import Run
from playhead_replay.forks.edits_in_words import REQUEST, ROOTS
from playhead_replay.forks.fork import request_of

router = APIRouter(tags=["reruns"])

LOOKS_S = 0.1
"""Seconds between two looks for new output."""
SAID_BYTES = 64 << 10
"""Number of bytes of a program's output that are shown, from its end."""

RerunId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]


def why_not(context: RequestContext, reruns: Reruns | None) -> str:
    """Why the caller may not have programs executed here; empty if it may."""
    if reruns is None:
        return "this receiver executes no programs"
    if context.caller.tenant:
        return "programs are executed only for the default tenant"
    if not context.caller.name:
        return "running programs from this page needs a token: open the page with playhead open"
    return (
        "" if context.caller.may("control") else f"the token {context.caller.name} has no scope control"
    )


def _executing(request: Request, context: Controlling) -> Reruns:
    reruns = serving_of(request).reruns
    reason, hint = why_not(context, reruns), "run the command on the agent's machine"
    if reruns is None:
        raise NotExecuted(reason, hint=hint)
    if reason:
        raise Forbidden(reason, hint=hint)
    return reruns


Executing = Annotated[Reruns, Depends(_executing)]


@router.get("/v1/reruns")
def list_reruns(request: Request, context: Reading) -> RerunList:
    """List replays and forks of this receiver, and whether the caller may start one."""
    reruns = serving_of(request).reruns
    context.note("read", "reruns")
    reason = why_not(context, reruns)
    found = [] if reruns is None or context.caller.tenant else reruns.all()
    return RerunList(
        allowed=not reason, why_not=reason or None, reruns=[RerunItem(**_item(one)) for one in found]
    )


@router.get("/v1/reruns/{rerun}")
async def show_rerun(
    request: Request,
    context: Reading,
    rerun: RerunId,
    after: Annotated[
        int | None, Query(ge=0, le=(1 << 63) - 1, description="Wait until `revision` differs from this.")
    ] = None,
    wait_s: Annotated[float, Query(ge=0, le=9, description="Maximum wait, in seconds.")] = 5.0,
) -> RerunState:
    """Get a replay or fork: its output, and its report or the run it records."""
    serving = serving_of(request)
    found = _find(context, serving.reruns, rerun)
    context.note("read", found.ordered.trace_id)
    with anyio.move_on_after(wait_s):
        while found.revision == after and found.state == "running" and not serving.stopping:
            await anyio.sleep(LOOKS_S)
    return await anyio.to_thread.run_sync(_state, context, found)


@router.delete("/v1/reruns/{rerun}")
def cancel_rerun(context: Controlling, reruns: Executing, rerun: RerunId) -> RerunItem:
    """Cancel a replay or fork. The recording of a fork is kept."""
    found = _find(context, reruns, rerun)
    context.note("control", found.ordered.trace_id)
    found.cancel()
    return RerunItem(**_item(found))


@router.get("/v1/runs/{run}/steps/{step}/request")
def show_request(
    context: Reading, run: RunName, step: Annotated[int, Path(ge=1, le=100_000_000)]
) -> EditableRequest:
    """Get the request of a step, in the form that a fork edits."""
    loaded = context.read(run)
    text = json.dumps(_request(loaded, step), indent=2, ensure_ascii=False)
    return EditableRequest(run=loaded.name, trace_id=loaded.trace_id, step=step, text=text)


@router.post("/v1/runs/{run}/replay")
def order_replay(context: Controlling, reruns: Executing, run: RunName, order: ReplayOrder) -> RerunItem:
    """Replay a run: its program is executed, and every request is answered from the recording."""
    summary = context.run(run)
    context.note("control", summary.trace_id)
    ordered = Ordered("replay", summary.name, summary.trace_id, None, context.caller.name)
    return RerunItem(**_item(reruns.start(ordered, replay_words(summary.trace_id))))


@router.post("/v1/runs/{run}/fork")
def order_fork(context: Controlling, reruns: Executing, run: RunName, order: ForkOrder) -> RerunItem:
    """Fork a run: replay it up to a step, apply edits, and continue live."""
    summary = context.run(run)
    context.note("control", summary.trace_id)
    edits = [Edit(one.path, one.value, one.remove, one.add) for one in order.edits]
    if order.request is not None:
        edits += _edits_of(context.load(summary), order)
    ordered = Ordered("fork", summary.name, summary.trace_id, order.step, context.caller.name)
    lines = list(patch_lines(edits))
    if not lines:
        return RerunItem(**_item(reruns.start(ordered, _words(ordered, order, None))))
    folder = tempfile.TemporaryDirectory(prefix="playhead-edits-")
    patch = FilePath(folder.name, "edits")
    patch.write_text("\n".join(lines) + "\n", "utf-8")
    try:
        made = reruns.start(ordered, _words(ordered, order, str(patch)), folder.cleanup)
    except BaseException:
        folder.cleanup()
        raise
    return RerunItem(**_item(made))


def _words(ordered: Ordered, order: ForkOrder, patch: str | None) -> list[str]:
    return fork_words(
        ordered.trace_id, ordered.step, patch, offline=order.offline, unanswered=order.unanswered
    )


def _request(run: Run, number: int) -> Any:
    step = run.step(number)
    exchanges = [] if step is None else run.exchanges_of(step)
    if not exchanges:
        raise UsageError(f"step {number} of {run.name} has no request to edit")
    return request_of(exchanges[0])


def _edits_of(run: Run, order: ForkOrder) -> list[Edit]:
    """Edits that turn the recorded request into the ordered one."""
    if order.step is None:
        raise UsageError("an edit needs a step")
    try:
        wanted = json.loads(order.request or "")
    except (ValueError, RecursionError) as problem:
        raise UsageError("the edited request is not valid JSON", cause=str(problem)) from None
    return [
        Edit(
            f"{REQUEST}{'' if one.path.startswith('[') or not one.path else '.'}{one.path}",
            one.value,
            one.remove,
            one.add,
        )
        for one in between(_request(run, order.step), wanted)
    ]


def _find(context: RequestContext, reruns: Reruns | None, id: str) -> Rerun:
    found = None if reruns is None or context.caller.tenant else reruns.get(id)
    if found is None:
        raise NotFound("no such replay or fork", hint="GET /v1/reruns")
    return found


def _item(one: Rerun) -> dict[str, Any]:
    ordered = one.ordered
    return {
        "id": one.id,
        "kind": ordered.kind,
        "run": ordered.run,
        "trace_id": ordered.trace_id,
        "step": ordered.step,
        "state": one.state,
        "started_ns": one.started_ns,
        "ended_ns": one.ended_ns,
        "exit_code": one.exit_code,
        "by": ordered.by,
        "revision": one.revision,
    }


def _state(context: RequestContext, one: Rerun) -> RerunState:
    item = _item(one)  # taken first: output that arrives in between belongs to the next revision
    is_replay, is_over = one.ordered.kind == "replay", item["state"] != "running"
    stderr = one.said
    last = _object(stderr.rstrip().rpartition(b"\n")[2])
    if "error" in last or "origin" in last:
        stderr = stderr.rstrip().rpartition(b"\n")[0]
    return RerunState(
        **item,
        made=None if is_replay else _made(context, one),
        said=_text(stderr),
        printed="" if is_replay else _text(one.printed),
        report=(_object(one.printed) or None) if is_replay and is_over else None,
        problem=_problem(last) if is_over else None,
    )


def _made(context: RequestContext, one: Rerun) -> str | None:
    """Name of the run that a fork records."""
    query = RunQuery(
        mode=None, origin=one.ordered.trace_id, started_from_ns=one.started_ns, ascending=True, limit=10
    )
    found = [run for run in context.store.runs(query) if run.mode == "fork"]
    if one.ended_ns is not None:
        found = [run for run in found if run.started_ns <= one.ended_ns]
    return found[0].name if found else None


def _object(text: bytes) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _problem(last: dict[str, Any]) -> RerunProblem | None:
    error: object = last.get("error")
    if not isinstance(error, dict):
        return None
    words = cast("dict[str, object]", error)
    return RerunProblem(**{name: str(words.get(name, "")) for name in RerunProblem.model_fields})


def _text(data: bytes) -> str:
    return data[-SAID_BYTES:].decode("utf-8", "replace")


Unanswered: TypeAlias = Literal["ask", "resend", "skip"]

PLAIN = ("--json", "--color", "never")


def replay_words(trace_id: str) -> list[str]:
    """Arguments of `playhead` for a replay, which prints its report to stdout."""
    return ["replay", *PLAIN, trace_id]


def fork_words(
    trace_id: str, step: int | None, patch: str | None, *, offline: bool, unanswered: Unanswered
) -> list[str]:
    """Arguments of `playhead` for a fork, which prints its result last to stderr."""
    words = ["fork", *PLAIN, "--on-unknown", unanswered]
    words += ["--offline"] if offline else []
    words += ["--patch", patch] if patch is not None else []
    return [*words, trace_id if step is None else f"{trace_id}:{step}"]


def patch_lines(edits: Iterable[Edit]) -> Iterator[str]:
    """Edits as lines of a file for `playhead fork --patch`. `UsageError`.

    Each value is written as JSON, so that no caller can have a value read from a file.
    """
    for edit in edits:
        root = next(iter(steps_of(edit.path)), None)
        if root not in ROOTS:
            raise UsageError(
                f"{visible(edit.path) or 'nothing'} cannot be edited",
                hint=f"a path begins with one of: {', '.join(ROOTS)}",
            )
        if "=" in edit.path or visible(edit.path) != edit.path or edit.path.splitlines() != [edit.path]:
            raise UsageError(
                f"{visible(edit.path)} cannot be written as a path",
                hint="playhead fork RUN:STEP --edit, in $EDITOR",
            )
        if edit.remove:
            yield f"{edit.path}!"
        else:
            yield f"{'+' if edit.add else ''}{edit.path}={json.dumps(edit.value)}"
