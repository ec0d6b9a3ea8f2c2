"""``playhead answer``: answer the pending request of a paused agent by hand."""

from __future__ import annotations

from pathlib import Path

import click

from playhead_cli.control.orders import Operator, orders, show, target_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError


@playhead_command("answer", short_help="Answer the pending request of a paused agent by hand")
@orders
@click.argument("body", metavar="BODY|@FILE")
@click.option("--status", type=click.IntRange(100, 599), default=200, show_default=True)
def command(session: Session, target: str, url: str | None, body: str, status: int) -> None:
    """Answer the pending request by hand: nothing is sent.

    BODY is the response body, or the return value of a tool, as JSON.
    """
    run, halt = target_of(target)
    if body.startswith("@"):
        try:
            body = Path(body[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise UsageError(f"{body[1:]} cannot be read", cause=str(problem)) from None
    show(session, run, Operator(session, url).order(run, "answer", halt=halt, body=body, status=status))
