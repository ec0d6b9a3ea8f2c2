"""``playhead reject``: refuse what a paused agent is about to do."""

from __future__ import annotations

import click

from playhead_cli.operating.orders import Operator, orders, show, target_of
from playhead_cli.options import verb
from playhead_cli.session import Session


@verb("reject", short_help="refuse what a paused agent is about to do")
@orders
@click.option("-m", "--message", default="", help="Why; the program gets it with the error.")
def command(session: Session, target: str, url: str | None, message: str) -> None:
    """Refuse what waits: it does not go out.

    An SDK gets an answer with status 403 and makes its own error of it; a call over
    gRPC fails with PERMISSION_DENIED; a tool raises an error.
    """
    run, halt = target_of(target)
    show(session, run, Operator(session, url).order(run, "reject", halt=halt, message=message))
