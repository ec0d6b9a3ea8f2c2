"""``playhead spool``: list and deliver undelivered recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from playhead_cli.output.columns import in_columns
from playhead_cli.output.words import count, size
from playhead_cli.running.agent import delivering_to
from playhead_cli.running.receiver_for_run import receiver_for
from playhead_cli.session.options import CommandGroup, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_exporter.push import pending
from playhead_exporter.push import push as deliver
from playhead_exporter.spool.folders import address

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedPush, PrintedSpool, PrintedUndelivered
    from playhead_exporter.spool import Pending


@click.group("spool", cls=CommandGroup, short_help="List and deliver undelivered recordings")
def command() -> None:
    """List and deliver undelivered recordings."""


@playhead_command("ls", short_help="List undelivered recordings")
def ls(session: Session) -> None:
    """List undelivered recordings by process."""
    found = pending(session.settings)
    if session.as_json:
        printed: PrintedSpool = {"schema_version": 1, "pending": [_plain(one) for one in found]}
        session.print_json(printed)
        return
    if not found:
        session.say("the spool is empty")
        return
    _print(session, found)
    if any(not one.alive for one in found):
        session.suggest("playhead spool push")


@playhead_command("push", short_help="Deliver recordings of ended processes")
@click.option("--all", "everything", is_flag=True, help="Include recordings for other destinations.")
def push(session: Session, everything: bool) -> int:
    """Deliver recordings that ended processes left behind.

    They go to the configured endpoint, or to the receiver of the data folder, which is embedded if it
    is not running. Recordings for another data folder or endpoint are skipped without --all. Exit
    status 1 if something could not be delivered.
    """
    settings, also = session.settings, ()
    with receiver_for(session.settings) as receiver:
        if session.resolved.origins["endpoint"] == "default":
            also = (address(settings),)  # of agents that have no endpoint either
            settings = delivering_to(settings, receiver.listening())
        report = deliver(settings, also=also, everything=everything)
    left = [one for one in report.remaining if not one.alive]
    tally = report.tally
    if session.as_json:
        printed: PrintedPush = {
            "schema_version": 1,
            "endpoint": settings.endpoint,
            "facts": tally.facts,
            "spans": tally.spans,
            "rejected": tally.rejected,
            "problem": report.problem or None,
            "pending": [_plain(one) for one in report.remaining],
        }
        session.print_json(printed)
    else:
        delivered = f"{count(tally.facts, 'fact')} and {count(tally.spans, 'span')}"
        session.say(f"delivered {delivered} to {settings.endpoint}")
        if tally.rejected:
            session.say(f"{tally.rejected} were rejected; they are in rejected/ of the spool")
        if left:
            session.say(f"not delivered: {report.problem or 'another process is delivering it'}")
            _print(session, left)
        if report.elsewhere:
            session.say(f"recorded for another destination: {count(len(report.elsewhere), 'process')}")
            session.say("to deliver them here: playhead spool push --all")
    return 1 if left or report.problem else 0


def _print(session: Session, found: list[Pending]) -> None:
    rows = [
        (
            one.instance.hex()[:8],
            one.agent,
            f"pid {one.pid} lives" if one.alive else "dead",
            count(one.facts, "fact"),
            count(one.spans, "span"),
            size(one.bytes),
        )
        for one in found
    ]
    print_lines(session, map(Text, in_columns(rows)))


def _plain(one: Pending) -> PrintedUndelivered:
    return {
        "instance": one.instance.hex(),
        "agent": one.agent or None,
        "pid": one.pid,
        "alive": one.alive,
        "facts": one.facts,
        "spans": one.spans,
        "size_bytes": one.bytes,
    }


command.add_command(ls)
command.add_command(push)
