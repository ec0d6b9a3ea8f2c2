"""``playhead continue``: let a paused agent go on."""

from __future__ import annotations

from playhead_cli.operating.orders import Operator, orders, show, target_of
from playhead_cli.options import verb
from playhead_cli.session import Session


@verb("continue", short_help="let a paused agent go on")
@orders
def command(session: Session, target: str, url: str | None) -> None:
    """Let an agent go on, or only N of those that wait. Conditions that were set stay."""
    run, halt = target_of(target)
    show(session, run, Operator(session, url).order(run, "continue", halt=halt))
