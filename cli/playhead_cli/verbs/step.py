"""``playhead step``: let one step of a paused agent happen."""

from __future__ import annotations

from playhead_cli.operating.orders import (
    Operator,
    lease_option,
    lease_s,
    orders,
    show,
    target_of,
    wait_option,
)
from playhead_cli.options import verb
from playhead_cli.session import Session


@verb("step", short_help="let one step of a paused agent happen")
@orders
@lease_option
@wait_option
def command(session: Session, target: str, url: str | None, lease: str, wait: str) -> None:
    """Let one of those that wait go out, the oldest or N, and show what waits then."""
    run, halt = target_of(target)
    operator = Operator(session, url)
    state = operator.order(run, "step", halt=halt, lease_s=lease_s(lease))
    taken = state["taken"]
    show(session, run, operator.halted(run, state, lease_s(wait)) | {"taken": taken})
