"""``playhead token``: who may send to the receiver, and who may ask it."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from playhead_cli.options import Verbs, verb
from playhead_cli.session import Session
from playhead_cli.views.words import age
from playhead_receiver.host.writer_lock import running

if TYPE_CHECKING:
    from playhead_receiver.access import Token, TokenBook

SCHEMA_VERSION = 1
SCOPES = ("ingest", "read", "control", "admin")


@click.group("token", cls=Verbs, short_help="make and revoke tokens")
def command() -> None:
    """Make tokens and revoke them. A data folder that has any is open to those who bring one.

    The command line on this machine needs none: it may read the folder.
    """


@verb("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("ingest",),
    show_default=True,
    help="What it allows; several times.",
)
@click.option("--tenant", default="", help="Whose data it is for, which nobody else sees.")
@click.option("--expires", metavar="TIME", help="When it ends, e.g. 90d. Default: never.")
def create(
    session: Session, name: str, scopes: tuple[str, ...], tenant: str, expires: str | None
) -> None:
    """Make a token. It is printed once and kept as a digest only."""
    from playhead_receiver.asking.language import duration_ns

    lifetime_ns = None if expires is None else duration_ns(expires)
    with _book(session) as book:
        first = not book.any_live()
        token, text = book.create(name, scopes, tenant=tenant, lifetime_ns=lifetime_ns)
    if session.as_json:
        session.print_json({"schema_version": SCHEMA_VERSION, "token": text, **_plain(token)})
        return
    click.echo(text)
    session.say("this is shown once; export PLAYHEAD_TOKEN=…")
    found = running(session.data_dir)
    if first and found is not None and found.query:
        session.say(f"process {found.pid} asks for a token from now on: agents, viewers, Collectors")
    if first and "ingest" not in scopes and "admin" not in scopes:
        session.say(
            "agents need one of their own from now on: playhead token create agents --scope ingest"
        )


@verb("list")
def list_all(session: Session) -> None:
    """List all tokens that were made, without their secrets."""
    with _book(session) as book:
        tokens = book.tokens()
    if session.as_json:
        session.print_json({"schema_version": SCHEMA_VERSION, "tokens": [_plain(one) for one in tokens]})
        return
    now = time.time_ns()
    for one in tokens:
        state = "" if one.lives(now) else "revoked" if one.revoked_ns is not None else "expired"
        tenant = f"tenant {one.tenant}" if one.tenant else ""
        words = (one.id, one.name, ",".join(one.scopes), tenant, age(now - one.created_ns), state)
        click.echo("  ".join(word for word in words if word))
    if not tokens:
        session.say(f"no tokens in {session.data_dir}")


@verb("revoke")
@click.argument("token", metavar="ID|NAME")
def revoke(session: Session, token: str) -> None:
    """End a token, at once, or all of a name."""
    with _book(session) as book:
        ended = book.revoke(token)
        open_again = not book.any_live()
    if session.as_json:
        session.print_json({"schema_version": SCHEMA_VERSION, "tokens": [_plain(one) for one in ended]})
        return
    for one in ended:
        session.say(f"{one.name} ({one.id}) opens nothing any more")
    if open_again:
        session.say("no token is left: the next playhead up is open to everybody on this machine")


for one in (create, list_all, revoke):
    command.add_command(one)


@contextmanager
def _book(session: Session) -> Generator[TokenBook]:
    from playhead_receiver.access import TokenBook
    from playhead_receiver.access.database import AccessFile

    file = AccessFile(session.data_dir)
    try:
        yield TokenBook(file)
    finally:
        file.close()


def _plain(token: Token) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(token)
    return found
