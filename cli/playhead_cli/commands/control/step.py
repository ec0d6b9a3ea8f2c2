"""``playhead step``: release one pending step of a paused agent."""

from __future__ import annotations

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


@playhead_command("step", short_help="Release one pending step of a paused agent")
@orders
@lease_option
@wait_option
def command(session: Session, target: str, url: str | None, lease: str, wait: str) -> None:
    """Release the oldest pending request (or number N), then show what is still pending."""
    run, halt = target_of(target)
    operator = Operator(session, url)
    state = operator.order(run, "step", halt=halt, lease_s=lease_s(lease))
    taken = state["taken"]
    show(session, run, operator.halted(run, state, lease_s(wait)) | {"taken": taken})
