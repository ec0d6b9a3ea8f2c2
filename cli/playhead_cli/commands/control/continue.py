"""``playhead continue``: continue a paused agent."""

from __future__ import annotations

from playhead_cli.control.orders import Operator, orders, show, target_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session


@playhead_command("continue", short_help="Continue a paused agent")
@orders
def command(session: Session, target: str, url: str | None) -> None:
    """Continue an agent, or release only pending request N. Conditions stay set."""
    run, halt = target_of(target)
    show(session, run, Operator(session, url).order(run, "continue", halt=halt))
