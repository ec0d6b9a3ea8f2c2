"""What the command `playhead` is told to replay or to fork a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from playhead_core.errors import UsageError
from playhead_core.rerun.edits import steps_of
from playhead_core.rerun.plans import Edit
from playhead_core.untrusted.shown_text import visible
from playhead_replay.forks.edits_in_words import ROOTS

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
