"""The control state of a run: as lines, and the pending request in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from playhead_cli.output.words import age
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit


LONGEST = 200
"""Characters of a request that are shown on its line."""


def control_lines(run: str, state: dict[str, Any]) -> Iterator[str]:
    """Yield ``refund-7 is held by anna for 9m``, then the pending requests."""
    lease = state["lease"]
    if not state["processes"]:
        yield f"{run} is not connected: it has ended, or does not accept commands"
        return
    if lease is None:
        yield f"{run} is running"
    else:
        how = "paused" if lease["paused"] else "held"
        yield f"{run} is {how} by {lease['holder']} for {_left(lease['left_s'])}"
        for rule in lease["rules"]:
            yield f"  rule: {rule}"
    for halt in state["halted"]:
        yield _halt_line(halt)


def _halt_line(halt: dict[str, Any]) -> str:
    number = str(halt["id"]).rpartition("-")[2]
    since = age(time.time_ns() - halt["since_ns"])
    if halt["reason"] == "arrives":
        return f"  {number}  a response arrived  {halt['kind']}  {since}"
    said = " ".join(_said(halt["body"]).split())
    said = said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
    return f"  {number}  {halt['kind']} {halt['key']}  {halt['reason']}  {since}  {said}".rstrip()


def _said(body: str | None) -> str:
    """Return the text of the last message of a request; the whole request if there is none."""
    try:
        document: Any = json.loads(body or "")
    except ValueError:
        return body or ""
    found = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    for name in ("messages", "input"):
        last: Any = found.get(name)
        while isinstance(last, list) and last:
            last = cast("list[Any]", last)[-1]
        if isinstance(last, dict):
            said = cast("dict[str, Any]", last)
            last = said.get("content") or said.get("text")
        if isinstance(last, str):
            return last
    return body or ""


def _left(seconds: float) -> str:
    return f"{seconds / 60:.0f}m" if seconds >= 120 else f"{seconds:.0f}s"


def pending_document(state: dict[str, Any], halt: str) -> Any:
    """Return the pending request as JSON. ``state``: of the run; ``halt``: its number, or empty.

    `UsageError` if there is not exactly one, or if it is not JSON.
    """
    pending = [
        one for one in state["halted"] if not halt or halt in (one["id"], one["id"].rpartition("-")[2])
    ]
    if len(pending) != 1:
        what = f"{len(pending)} requests are pending" if pending else "no request is pending"
        raise UsageError(what, hint="name one as RUN:N; playhead pause RUN lists them")
    try:
        return json.loads(pending[0]["body"] or "")
    except ValueError:
        raise UsageError("the pending request is not JSON, or not complete here") from None


def edit_object(edit: Edit) -> dict[str, Any]:
    """Return an edit in the format of the query API."""
    return {"path": edit.path, "value": edit.value, "remove": edit.remove, "add": edit.add}
