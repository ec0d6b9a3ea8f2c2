"""``playhead mcp``: recorded runs for agents that speak MCP."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import click

from playhead_cli.options import verb
from playhead_cli.session import Session
from playhead_semconv.errors import UsageError


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
    from playhead_cli.running.query_api import query_api
    from playhead_exporter.shipping.trust import Trust

    given = session.settings
    trust = Trust(given.certificate, given.client_certificate, given.client_key)
    with query_api(session, url) as found:
        mcp_server(QueryApi(found.url, found.token, trust), version("playhead")).run("stdio")
