"""``playhead token``: create, list and revoke tokens."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_cli.output.words import age
from playhead_cli.session.options import CommandGroup, playhead_command
from playhead_cli.session.session import Session
from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.queries.language import duration_ns
from playhead_receiver.system.defaults import HTTP_PORT, QUERY_PORT, ListenAddress
from playhead_receiver.system.writer_lock import running

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedNewToken, PrintedToken, PrintedTokens
    from playhead_receiver.auth import Token
    from playhead_receiver.system.writer_lock import Listening

SCOPES = ("ingest", "read", "control", "admin")


@click.group("token", cls=CommandGroup, short_help="Create, list and revoke tokens")
def command() -> None:
    """Create, list and revoke tokens. Once a data folder has a token, clients need one.

    The command line on this machine needs no token, because it can read the folder.
    """


@playhead_command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    default=("ingest",),
    show_default=True,
    help="Scope; may be repeated.",
)
@click.option("--tenant", default="", help="Tenant, whose data is separate.")
@click.option("--expires", metavar="TIME", help="Expires after this time, e.g. 90d. Default: never.")
def create(
    session: Session, name: str, scopes: tuple[str, ...], tenant: str, expires: str | None
) -> None:
    """Create a token. It is printed once and stored as a digest; stderr shows how to use it.

    Without tokens, a data folder is open to this machine. After the first one, agents and readers
    need a token; recordings made without one wait in the agent's spool.
    """
    lifetime_ns = None if expires is None else duration_ns(expires)
    with _book(session) as book:
        is_first = not book.requires_one()
        token, text = book.create(name, scopes, tenant=tenant, lifetime_ns=lifetime_ns)
    found = running(session.data_dir)
    recipe = Recipe.of(token, text, found)
    if session.as_json:
        printed: PrintedNewToken = {
            "schema_version": 1,
            "token": text,
            "variables": recipe.variables,
            "query": recipe.query,
            **_plain(token),
        }
        session.print_json(printed)
        return
    click.echo(text)
    session.say("this token is shown only once")
    for line in recipe.lines():
        click.echo(line, err=True)
    if is_first:
        _say_closed(session, found, delivers=recipe.delivers)
        session.say(f"to undo: playhead token revoke {token.id}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to use a token."""

    text: str
    delivers: bool
    reads: bool
    endpoint: str
    """The endpoint for records."""
    query: str
    """URL of the query API."""

    @classmethod
    def of(cls, token: Token, text: str, found: Listening | None) -> Recipe:
        """``found``: the running receiver of the data folder; None: use its default address."""
        may = {"ingest", "read"} if "admin" in token.scopes else set(token.scopes)
        endpoint = found.http if found is not None else ""
        query = found.query if found is not None else ""
        return cls(
            text,
            "ingest" in may,
            "read" in may,
            endpoint or f"http://{ListenAddress().host}:{HTTP_PORT}",
            query or f"http://{ListenAddress().host}:{QUERY_PORT}",
        )

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables for the token's user."""
        if not self.delivers:
            return {"PLAYHEAD_TOKEN": self.text}
        return {
            "PLAYHEAD_ENDPOINT": self.endpoint,
            "PLAYHEAD_TOKEN": self.text,
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{self.text}",
        }

    def lines(self) -> Iterator[str]:
        """Commands, with comments on their users."""
        exports = {name: f"export {name}={value}" for name, value in self.variables.items()}
        if self.delivers:
            yield "# an agent delivers with"
            yield exports["PLAYHEAD_ENDPOINT"]
            yield exports["PLAYHEAD_TOKEN"]
            yield "# any other exporter of OpenTelemetry, over HTTP, with"
            yield exports["OTEL_EXPORTER_OTLP_ENDPOINT"]
            yield exports["OTEL_EXPORTER_OTLP_HEADERS"]
        if self.reads:
            yield "# who looks reads with"
            if not self.delivers:
                yield exports["PLAYHEAD_TOKEN"]
            yield f'curl -H "Authorization: Bearer $PLAYHEAD_TOKEN" {self.query}/v1/runs'
            yield f"playhead mcp --url {self.query}"


def _say_closed(session: Session, found: Listening | None, *, delivers: bool) -> None:
    """Report what the first token of a data folder changes. ``delivers``: agents can use it."""
    if found is not None and found.query and not found.passing:
        session.say(
            f"process {found.pid} asks for a token from now on: agents, viewers, Collectors; what agents"
            " record without one waits in their spool until they are started with it"
        )
    else:
        session.say("the next playhead up requires a token")
    if not delivers:
        session.say("agents need a token: playhead token create agents --scope ingest")


@playhead_command("list")
def list_all(session: Session) -> None:
    """List all tokens, without their secrets."""
    with _book(session) as book:
        tokens = book.tokens()
    if session.as_json:
        printed: PrintedTokens = {"schema_version": 1, "tokens": [_plain(one) for one in tokens]}
        session.print_json(printed)
        return
    now = time.time_ns()
    for one in tokens:
        state = "" if one.lives(now) else "revoked" if one.revoked_ns is not None else "expired"
        used = "" if one.used_ns is None else f"used {age(now - one.used_ns)} ago"
        tenant = f"tenant {one.tenant}" if one.tenant else ""
        words = (one.id, one.name, ",".join(one.scopes), tenant, age(now - one.created_ns), used, state)
        click.echo("  ".join(word for word in words if word))
    if not tokens:
        session.say(f"no tokens in {session.data_dir}")


@playhead_command("revoke")
@click.argument("token", metavar="ID|NAME")
def revoke(session: Session, token: str) -> None:
    """Revoke a token, or all tokens of a name, at once."""
    with _book(session) as book:
        ended = book.revoke(token)
        open_again = not book.requires_one()
    if session.as_json:
        printed: PrintedTokens = {"schema_version": 1, "tokens": [_plain(one) for one in ended]}
        session.print_json(printed)
        return
    for one in ended:
        session.say(f"{one.name} ({one.id}) is revoked")
    if open_again:
        session.say("no tokens left: the receiver is open to every user of this machine")


for one in (create, list_all, revoke):
    command.add_command(one)


@contextmanager
def _book(session: Session) -> Generator[TokenBook]:
    file = AccessFile(session.data_dir)
    try:
        yield TokenBook(file)
    finally:
        file.close()


def _plain(token: Token) -> PrintedToken:
    return msgspec.to_builtins(token)
