"""``playhead reject``: reject the pending request of a paused agent."""

from __future__ import annotations

import click

from playhead_cli.control.orders import Operator, orders, show, target_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session


@playhead_command("reject", short_help="Reject the pending request of a paused agent")
@orders
@click.option("-m", "--message", default="", help="Reason; part of the error that the program receives.")
def command(session: Session, target: str, url: str | None, message: str) -> None:
    """Reject the pending request: it is not sent.

    An SDK receives status 403 and raises its own error; a gRPC call fails with PERMISSION_DENIED; a
    tool raises an error.
    """
    run, halt = target_of(target)
    show(session, run, Operator(session, url).order(run, "reject", halt=halt, message=message))
