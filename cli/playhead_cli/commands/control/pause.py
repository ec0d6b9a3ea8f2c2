"""``playhead pause``: pause a running agent at its next step."""

from __future__ import annotations

import click

from playhead_cli.control.orders import (
    Operator,
    lease_option,
    lease_s,
    orders,
    show,
    target_of,
    wait_option,
)
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session


@playhead_command("pause", short_help="Pause a running agent at its next step")
@orders
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
def command(
    session: Session,
    target: str,
    url: str | None,
    breakpoints: tuple[str, ...],
    limits: tuple[str, ...],
    lease: str,
    wait: str,
) -> None:
    """Pause an agent before its next request, and show that request.

    The agent must be recorded with PLAYHEAD_CONTROL=on. Responses to earlier requests are held while
    it is paused, except over gRPC. With --on or --stop it runs until the condition is met.
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
        state = operator.halted(run, state, waited_s) | {"taken": taken}
    show(session, run, state)
    session.suggest(f"playhead step {run}")
