"""Replays and forks on this machine: ordered, followed, cancelled."""

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
from playhead_receiver.api.asked import ApiRequest, Controlling, Reading, RunName, serving_of
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
"""How often it is looked whether something came."""
SAID_BYTES = 64 << 10
"""Of what a program says at most so much is shown: its end."""

RerunId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]


def why_not(asked: ApiRequest, reruns: Reruns | None) -> str:
    """Why who asks may have no program executed here; empty: they may."""
    if reruns is None:
        return "this receiver executes no programs"
    if asked.caller.tenant:
        return "programs are executed for the data folder's own tenant alone"
    if not asked.caller.name:
        return "running programs from this page needs a token: open the page with playhead open"
    return "" if asked.caller.may("control") else f"the token {asked.caller.name} has no scope control"


def _executing(request: Request, asked: Controlling) -> Reruns:
    reruns = serving_of(request).reruns
    reason, hint = why_not(asked, reruns), "type the command where the program is"
    if reruns is None:
        raise NotExecuted(reason, hint=hint)
    if reason:
        raise Forbidden(reason, hint=hint)
    return reruns


Executing = Annotated[Reruns, Depends(_executing)]


@router.get("/v1/reruns")
def list_reruns(request: Request, asked: Reading) -> RerunList:
    """List replays and forks of this receiver, and whether the caller may start one."""
    reruns = serving_of(request).reruns
    asked.note("read", "reruns")
    reason = why_not(asked, reruns)
    found = [] if reruns is None or asked.caller.tenant else reruns.all()
    return RerunList(
        allowed=not reason, why_not=reason or None, reruns=[RerunItem(**_item(one)) for one in found]
    )


@router.get("/v1/reruns/{rerun}")
async def show_rerun(
    request: Request,
    asked: Reading,
    rerun: RerunId,
    after: Annotated[
        int | None, Query(ge=0, le=(1 << 63) - 1, description="Wait until `revision` differs from this.")
    ] = None,
    wait_s: Annotated[float, Query(ge=0, le=9, description="Maximum wait, in seconds.")] = 5.0,
) -> RerunState:
    """Get a replay or fork: its output, and its report or the run it records."""
    serving = serving_of(request)
    found = _found(asked, serving.reruns, rerun)
    asked.note("read", found.ordered.trace_id)
    with anyio.move_on_after(wait_s):
        while found.revision == after and found.state == "running" and not serving.stopping:
            await anyio.sleep(LOOKS_S)
    return await anyio.to_thread.run_sync(_state, asked, found)


@router.delete("/v1/reruns/{rerun}")
def cancel_rerun(asked: Controlling, reruns: Executing, rerun: RerunId) -> RerunItem:
    """Cancel a replay or fork. What a fork has recorded is kept."""
    found = _found(asked, reruns, rerun)
    asked.note("control", found.ordered.trace_id)
    found.cancel()
    return RerunItem(**_item(found))


@router.get("/v1/runs/{run}/steps/{step}/request")
def show_request(
    asked: Reading, run: RunName, step: Annotated[int, Path(ge=1, le=100_000_000)]
) -> EditableRequest:
    """The request of a step, in the form that a fork edits."""
    trace_id = asked.run(run).trace_id
    asked.note("read", trace_id)
    loaded = Run.load(asked.store, trace_id)
    text = json.dumps(_request(loaded, step), indent=2, ensure_ascii=False)
    return EditableRequest(run=loaded.name, trace_id=trace_id, step=step, text=text)


@router.post("/v1/runs/{run}/replay")
def order_replay(asked: Controlling, reruns: Executing, run: RunName, said: ReplayOrder) -> RerunItem:
    """Replay a run: its program is executed, and every request is answered from the recording."""
    summary = asked.run(run)
    asked.note("control", summary.trace_id)
    ordered = Ordered("replay", summary.name, summary.trace_id, None, asked.caller.name)
    return RerunItem(**_item(reruns.start(ordered, replay_words(summary.trace_id))))


@router.post("/v1/runs/{run}/fork")
def order_fork(asked: Controlling, reruns: Executing, run: RunName, said: ForkOrder) -> RerunItem:
    """Fork a run: replay it up to a step, apply edits, and continue live."""
    summary = asked.run(run)
    asked.note("control", summary.trace_id)
    edits = [Edit(one.path, one.value, one.remove, one.add) for one in said.edits]
    if said.request is not None:
        edits += _edits_of(Run.load(asked.store, summary.trace_id), said)
    ordered = Ordered("fork", summary.name, summary.trace_id, said.step, asked.caller.name)
    lines = list(patch_lines(edits))
    if not lines:
        return RerunItem(**_item(reruns.start(ordered, _words(ordered, said, None))))
    folder = tempfile.TemporaryDirectory(prefix="playhead-edits-")
    patch = FilePath(folder.name, "edits")
    patch.write_text("\n".join(lines) + "\n", "utf-8")
    try:
        made = reruns.start(ordered, _words(ordered, said, str(patch)), folder.cleanup)
    except BaseException:
        folder.cleanup()
        raise
    return RerunItem(**_item(made))


def _words(ordered: Ordered, said: ForkOrder, patch: str | None) -> list[str]:
    return fork_words(
        ordered.trace_id, ordered.step, patch, offline=said.offline, unanswered=said.unanswered
    )


def _request(run: Run, number: int) -> Any:
    step = run.step(number)
    exchanges = [] if step is None else run.exchanges_of(step)
    if not exchanges:
        raise UsageError(f"step {number} of {run.name} has no request to edit")
    return request_of(exchanges[0])


def _edits_of(run: Run, said: ForkOrder) -> list[Edit]:
    """Edits that turn the recorded request into the one that is said."""
    if said.step is None:
        raise UsageError("an edit needs a step")
    try:
        wanted = json.loads(said.request or "")
    except (ValueError, RecursionError) as problem:
        raise UsageError("the request is no JSON any more", cause=str(problem)) from None
    return [
        Edit(
            f"{REQUEST}{'' if one.path.startswith('[') or not one.path else '.'}{one.path}",
            one.value,
            one.remove,
            one.add,
        )
        for one in between(_request(run, said.step), wanted)
    ]


def _found(asked: ApiRequest, reruns: Reruns | None, id: str) -> Rerun:
    found = None if reruns is None or asked.caller.tenant else reruns.get(id)
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


def _state(asked: ApiRequest, one: Rerun) -> RerunState:
    item = _item(one)  # before what is read: what comes in between is told by the next revision
    is_replay, is_over = one.ordered.kind == "replay", item["state"] != "running"
    said = one.said
    last = _object(said.rstrip().rpartition(b"\n")[2])
    if "error" in last or "origin" in last:
        said = said.rstrip().rpartition(b"\n")[0]
    return RerunState(
        **item,
        made=None if is_replay else _made(asked, one),
        said=_text(said),
        printed="" if is_replay else _text(one.printed),
        report=(_object(one.printed) or None) if is_replay and is_over else None,
        problem=_problem(last) if is_over else None,
    )


def _made(asked: ApiRequest, one: Rerun) -> str | None:
    """The run that a fork has begun."""
    query = RunQuery(
        mode=None, origin=one.ordered.trace_id, started_from_ns=one.started_ns, ascending=True, limit=10
    )
    found = [run for run in asked.store.runs(query) if run.mode == "fork"]
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
    said: object = last.get("error")
    if not isinstance(said, dict):
        return None
    words = cast("dict[str, object]", said)
    return RerunProblem(**{name: str(words.get(name, "")) for name in RerunProblem.model_fields})


def _text(data: bytes) -> str:
    return data[-SAID_BYTES:].decode("utf-8", "replace")


Unanswered: TypeAlias = Literal["ask", "resend", "skip"]

PLAIN = ("--json", "--color", "never")


def replay_words(trace_id: str) -> list[str]:
    """A replay: its report comes on stdout."""
    return ["replay", *PLAIN, trace_id]


def fork_words(
    trace_id: str, step: int | None, patch: str | None, *, offline: bool, unanswered: Unanswered
) -> list[str]:
    """A fork: the object that says what it became comes last on stderr. ``patch``: a file of edits."""
    words = ["fork", *PLAIN, "--on-unknown", unanswered]
    words += ["--offline"] if offline else []
    words += ["--patch", patch] if patch is not None else []
    return [*words, trace_id if step is None else f"{trace_id}:{step}"]


def patch_lines(edits: Iterable[Edit]) -> Iterator[str]:
    """Edits as lines of a file that `playhead fork --patch` takes. `UsageError`.

    No value is read from a file, whatever a caller says: every one is written as JSON.
    """
    for edit in edits:
        root = next(iter(steps_of(edit.path)), None)
        if root not in ROOTS:
            raise UsageError(
                f"{visible(edit.path) or 'nothing'} cannot be edited",
                hint=f"it begins with one of: {', '.join(ROOTS)}",
            )
        if "=" in edit.path or visible(edit.path) != edit.path or edit.path.splitlines() != [edit.path]:
            raise UsageError(
                f"{visible(edit.path)} cannot be said in words",
                hint="playhead fork RUN:STEP --edit, in $EDITOR",
            )
        if edit.remove:
            yield f"{edit.path}!"
        else:
            yield f"{'+' if edit.add else ''}{edit.path}={json.dumps(edit.value)}"
