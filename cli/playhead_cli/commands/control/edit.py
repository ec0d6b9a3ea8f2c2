"""``playhead edit``: edit the pending request of a paused agent."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_cli.control.orders import Operator, orders, show, target_of
from playhead_cli.control.waiting import document_of, said_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Edit


@playhead_command("edit", short_help="Edit the pending request of a paused agent")
@orders
@click.argument("edits", metavar="[PATH=VALUE]...", nargs=-1)
def command(session: Session, target: str, url: str | None, edits: tuple[str, ...]) -> None:
    """Edit the pending request, or the arguments of a pending tool call, and show it. It stays pending.

    PATH=VALUE sets a value (messages[-1].content=hello), +PATH=VALUE adds one, PATH! removes one.
    state.NAME.PATH=VALUE changes a state that the program registered. Without an edit, the request is
    opened in $EDITOR.
    """
    from playhead_replay.forks.edits_in_words import edit_by_hand

    run, halt = target_of(target)
    operator = Operator(session, url)
    if edits:
        name, made = _parsed(edits)
    else:
        name, made = "", edit_by_hand(document_of(operator.state(run), halt), os.environ)
    said = [said_of(edit) for edit in made]
    show(session, run, operator.order(run, "edit", halt=halt, edits=said, state=name))


def _parsed(edits: tuple[str, ...]) -> tuple[str, list[Edit]]:
    """The state that is edited (empty: what waits), and the edits. `UsageError`."""
    from playhead_core.rerun.edits import path_of, steps_of
    from playhead_replay.forks.edits_in_words import FUNCTION, REQUEST, STATE, parse_edit

    parsed = [parse_edit(one) for one in edits]
    roots = {root for root, _ in parsed}
    if roots <= {REQUEST, FUNCTION}:
        return "", [edit for _, edit in parsed]
    if roots != {STATE}:
        raise UsageError(
            f"{', '.join(sorted(roots))} cannot be edited together",
            hint="request.…, function.… of a tool, or state.NAME.…",
        )
    steps = [steps_of(edit.path) for _, edit in parsed]
    names = {str(first[0]) if first else "" for first in steps}
    if len(names) != 1 or not all(names):
        raise UsageError("only one state can be edited at a time", hint="state.NAME.PATH=VALUE")
    made = [
        msgspec.structs.replace(edit, path=path_of(first[1:]))
        for (_, edit), first in zip(parsed, steps, strict=True)
    ]
    return names.pop(), made
