"""``playhead mcp``: recorded runs for agents that speak MCP."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version

import click

from playhead_cli.options import verb
from playhead_cli.session import Session
from playhead_receiver.host.writer_lock import running
from playhead_semconv.errors import StoreBusy, UsageError


@verb("mcp", short_help="let agents read runs, over MCP on stdio")
@click.option(
    "--url", help="The query API of a receiver. Default: of the one on the data folder, else its own."
)
def command(session: Session, url: str | None) -> None:
    """Serve runs to an agent over MCP, on stdin and stdout: lists, trees, messages, search, comparison.

    The token for the query API, where it needs one, is PLAYHEAD_TOKEN with the scope read; for the
    receiver of the data folder none is needed.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the package mcp is not installed", hint="pip install 'playhead[mcp]'")
    from playhead_cli.mcp.server import QueryApi, mcp_server
    from playhead_exporter.shipping.trust import Trust

    given = session.settings
    trust = Trust(given.certificate, given.client_certificate, given.client_key)
    with _answering(session, url) as (where, token):
        mcp_server(QueryApi(where, token, trust), version("playhead")).run("stdio")


@contextmanager
def _answering(session: Session, url: str | None) -> Generator[tuple[str, str]]:
    """Where the query API is, and the token for it."""
    found = running(session.data_dir)
    if url:
        yield url, session.settings.token
        return
    if found is not None and found.query:
        yield found.query, session.settings.token or found.key
        return
    if found is not None:
        raise StoreBusy(
            f"process {found.pid} writes to {session.data_dir} and has no query API",
            hint="playhead up, or wait for it to end",
        )
    from playhead_receiver.configuration import Addresses, Configuration, Storage
    from playhead_receiver.server import Receiver
    from playhead_receiver.store.content.references import References

    configuration = Configuration(
        Addresses(http_port=0, grpc_port=None, query_port=0),
        storage=Storage(session.settings.store),
        references=References.named(session.settings.references),
    )
    with Receiver(session.data_dir, configuration) as receiver:
        yield receiver.query_endpoint, ""
