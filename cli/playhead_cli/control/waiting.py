"""What waits of a paused agent, and edits of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit


def document_of(state: dict[str, Any], halt: str) -> Any:
    """What waits, as JSON. ``state``: the control of a run; ``halt``: which, empty for the only one.

    `UsageError` if that is not one, or no JSON.
    """
    waits = [
        one for one in state["halted"] if not halt or halt in (one["id"], one["id"].rpartition("-")[2])
    ]
    if len(waits) != 1:
        what = f"{len(waits)} wait" if waits else "nothing waits"
        raise UsageError(what, hint="name one as RUN:N; playhead pause RUN lists them")
    try:
        return json.loads(waits[0]["body"] or "")
    except ValueError:
        raise UsageError("the pending request is not JSON, or not complete here") from None


def said_of(edit: Edit) -> dict[str, Any]:
    """An edit as the query API takes it."""
    return {"path": edit.path, "value": edit.value, "remove": edit.remove, "add": edit.add}
