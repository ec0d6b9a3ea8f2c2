"""Commands of ``playhead control``, also accepted as ``playhead pause``, ``playhead step``, …."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_cli.control.orders import (
    Operator,
    lease_option,
    lease_s,
    operator_options,
    print_state,
    target_of,
    wait_option,
)
from playhead_cli.control.state_lines import edit_object, pending_document
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_core.rerun.edits import path_of, steps_of
from playhead_core.untrusted.shown_text import visible
from playhead_replay.forks.edits_in_words import FUNCTION, REQUEST, STATE, edit_by_hand, parse_edit

if TYPE_CHECKING:
    from playhead_cli.json_output.controlled import PrintedMadeCheckpoint
    from playhead_core.rerun.plans import Edit


@playhead_command("pause", short_help="Pause a running agent at its next step")
@operator_options
@click.option(
    "--on",
    "breakpoints",
    metavar="CONDITION",
    multiple=True,
    help="Pause when this is met: tool=NAME, model=NAME, error, loop, tokens>N, cost>USD, "
    "steps>N, seconds>N.",
)
@click.option(
    "--stop",
    "limits",
    metavar="CONDITION",
    multiple=True,
    help="Reject requests once this is met, e.g. cost>1.",
)
@lease_option
@wait_option
def pause_command(
    session: Session,
    target: str,
    url: str | None,
    breakpoints: tuple[str, ...],
    limits: tuple[str, ...],
    lease: str,
    wait: str,
) -> None:
    """Pause an agent before its next request, and show that request.

    Responses to earlier requests are held while it is paused, except over gRPC. With --on or --stop it
    runs until the condition is met. For your own agents on this machine, PLAYHEAD_CONTROL=on is not
    needed.
    """
    run, _ = target_of(target)
    operator, held_s, waited_s = Operator(session, url), lease_s(lease), lease_s(wait)
    if breakpoints or limits:
        state = operator.state(run)
        if breakpoints:
            state = operator.order(run, "breakpoints", on=list(breakpoints), lease_s=held_s)
        if limits:
            state = operator.order(run, "limits", stop=list(limits), lease_s=held_s)
    else:
        state = operator.order(run, "pause", lease_s=held_s)
        taken = state["taken"]
        state = operator.wait_for_pending(run, state, waited_s) | {"taken": taken}
    print_state(session, run, state)
    session.suggest(f"playhead step {run}")


@playhead_command("step", short_help="Release one pending step of a paused agent")
@operator_options
@lease_option
@wait_option
def step_command(session: Session, target: str, url: str | None, lease: str, wait: str) -> None:
    """Release the oldest pending request (or number N), then show what is still pending."""
    run, halt = target_of(target)
    operator = Operator(session, url)
    state = operator.order(run, "step", halt=halt, lease_s=lease_s(lease))
    taken = state["taken"]
    print_state(session, run, operator.wait_for_pending(run, state, lease_s(wait)) | {"taken": taken})


@playhead_command("continue", short_help="Continue a paused agent")
@operator_options
def continue_command(session: Session, target: str, url: str | None) -> None:
    """Continue an agent, or release only pending request N. Conditions stay set."""
    run, halt = target_of(target)
    print_state(session, run, Operator(session, url).order(run, "continue", halt=halt))


@playhead_command("edit", short_help="Edit the pending request of a paused agent")
@operator_options
@click.argument("edits", metavar="[PATH=VALUE]...", nargs=-1)
def edit_command(session: Session, target: str, url: str | None, edits: tuple[str, ...]) -> None:
    """Edit the pending request, or the arguments of a pending tool call, and show it. It stays pending.

    PATH=VALUE sets a value (messages[-1].content=hello), +PATH=VALUE adds one, PATH! removes one.
    state.NAME.PATH=VALUE changes a state that the program registered. Without an edit, the request is
    opened in $EDITOR.
    """
    run, halt = target_of(target)
    operator = Operator(session, url)
    if edits:
        name, made = _parsed(edits)
    else:
        name, made = "", edit_by_hand(pending_document(operator.state(run), halt), os.environ)
    said = [edit_object(edit) for edit in made]
    print_state(session, run, operator.order(run, "edit", halt=halt, edits=said, state=name))


def _parsed(edits: tuple[str, ...]) -> tuple[str, list[Edit]]:
    """Return the name of the state to edit (empty: the pending request), and the edits. `UsageError`."""
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


@playhead_command("reject", short_help="Reject the pending request of a paused agent")
@operator_options
@click.option("-m", "--message", default="", help="Reason; part of the error that the program receives.")
def reject_command(session: Session, target: str, url: str | None, message: str) -> None:
    """Reject the pending request: it is not sent.

    An SDK receives status 403 and raises its own error; a gRPC call fails with PERMISSION_DENIED; a
    tool raises an error.
    """
    run, halt = target_of(target)
    print_state(session, run, Operator(session, url).order(run, "reject", halt=halt, message=message))


@playhead_command("answer", short_help="Answer the pending request of a paused agent by hand")
@operator_options
@click.argument("body", metavar="BODY|@FILE")
@click.option("--status", type=click.IntRange(100, 599), default=200, show_default=True)
def answer_command(session: Session, target: str, url: str | None, body: str, status: int) -> None:
    """Answer the pending request by hand: nothing is sent.

    BODY is the response body, or the return value of a tool, as JSON.
    """
    run, halt = target_of(target)
    if body.startswith("@"):
        try:
            body = Path(body[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise UsageError(f"{body[1:]} cannot be read", cause=str(problem)) from None
    print_state(
        session, run, Operator(session, url).order(run, "answer", halt=halt, body=body, status=status)
    )


@playhead_command("checkpoint", short_help="Create a checkpoint of a running agent")
@operator_options
@click.option("--label", default="", help="Label of the checkpoint.")
@click.option(
    "--wait",
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long to wait for the next step, at most 60s.",
)
def checkpoint_command(session: Session, target: str, url: str | None, label: str, wait: str) -> int:
    """Create a checkpoint before the agent's next request, and print its name.

    The agent continues; if it is paused, the checkpoint is created at once. Exit status 1 if the next
    step did not begin in time; the checkpoint is then created when it does.
    """
    run, halt = target_of(target)
    if halt:
        raise UsageError("a checkpoint is of the run as a whole", hint=f"playhead checkpoint {run}")
    made = Operator(session, url).order(run, "checkpoint", label=label, wait_s=lease_s(wait))
    name = made["name"]
    if session.as_json:
        printed: PrintedMadeCheckpoint = {"schema_version": 1, "run": run, **made}  # type: ignore[typeddict-item]
        session.print_json(printed)
    elif name is not None:
        click.echo(visible(str(name)))
        session.suggest(f"playhead state {run}:{name}")
    elif made["made"]:
        session.say("the checkpoint was created but not delivered yet")
        session.suggest(f"playhead checkpoints {run}")
    else:
        session.say("the agent has not reached its next step; the checkpoint will be created there")
    return 0 if made["made"] else 1
