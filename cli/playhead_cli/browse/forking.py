"""A fork from a step: its request as a document, edits as words, and whether its program is here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead_core.errors import TapeMissing, UsageError
from playhead_core.rerun.edits import between
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit
    from playhead_replay import Run


def request_at(run: Run, number: int) -> Any:
    """The request of a step, as a document that can be edited. `UsageError`, `TapeError`."""
    from playhead_replay.forks.fork import request_of

    step = run.step(number)
    exchanges = [] if step is None else run.exchanges_of(step)
    if not exchanges:
        raise UsageError(f"step {number} has no request to edit")
    return request_of(exchanges[0])


def edit_words(old: Any, new: Any) -> list[str]:
    """Options of ``playhead fork`` that turn ``old`` into ``new``. `UsageError` if there are none."""
    edits = between(old, new)
    if not edits:
        raise UsageError("nothing was edited", hint="a fork without an edit: x")
    return [word for edit in edits for word in ("--edit", _in_words(edit))]


def _in_words(edit: Edit) -> str:
    """An edit as it is typed; hidden characters are escaped, as JSON allows it."""
    path = f"request{'' if edit.path.startswith('[') or not edit.path else '.'}{edit.path}"
    if "=" in path or visible(path) != path:
        raise UsageError(
            f"{path} cannot be said in words", hint="playhead fork RUN:STEP --edit, in $EDITOR"
        )
    if edit.remove:
        return f"{path}!"
    return f"{'+' if edit.add else ''}{path}={visible(json.dumps(edit.value, ensure_ascii=False))}"


def lacking_program(run: Run) -> str:
    """Why the program of a run cannot be started here; empty if nothing is in its way."""
    try:
        command = run.command
    except TapeMissing as problem:
        return problem.what
    path = command.script_path(Path(command.cwd))
    return f"{command.script} is not in {command.cwd}" if path is not None and not path.is_file() else ""
