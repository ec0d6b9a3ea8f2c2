"""``playhead verify``: is everything here, and is it what came in?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import verb
from playhead_receiver.cli.session import Session

if TYPE_CHECKING:
    from playhead_receiver.store.upkeep import Finding

SCHEMA_VERSION = 1
MOST_SHOWN = 50


@verb("verify", short_help="check the store against its digests")
def command(session: Session) -> int:
    """Read the whole store, compare it with its digests and look for what is missing.

    May run while a receiver writes. Exit status 1 when something is wrong.
    """
    from playhead_receiver.store import open_store

    store = open_store(session.store, read_only=True)
    try:
        found = list(store.verify())
    finally:
        store.close()
    if session.as_json:
        session.print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "findings": [
                    {"what": one.what, "where": one.where, "problem": one.problem} for one in found
                ],
            }
        )
    else:
        _say(session, found)
    return 1 if found else 0


def _say(session: Session, found: list[Finding]) -> None:
    for one in found[:MOST_SHOWN]:
        click.echo(f"{one.what} {one.where}: {one.problem}")
    if len(found) > MOST_SHOWN:
        session.say(f"and {len(found) - MOST_SHOWN} more")
    if not found:
        session.say(f"{session.store_name} is whole")
