"""``playhead mcp``: serve runs to agents over MCP on stdio."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import click

from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError


@playhead_command("mcp", short_help="Serve runs to agents over MCP on stdio")
@click.option(
    "--url", help="Query API of a receiver. Default: that of the data folder, or an embedded one."
)
def command(session: Session, url: str | None) -> None:
    """Serve runs to an agent over MCP on stdin and stdout: lists, trees, messages, search, diff.

    If the query API requires a token, set PLAYHEAD_TOKEN (scope read). The receiver of the data
    folder does not require one.
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
