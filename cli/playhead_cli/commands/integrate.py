"""``playhead mcp`` and ``playhead completion``: serve runs over MCP; print a completion script."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import click
from click.shell_completion import get_completion_class

from playhead_cli.completion.shells import VARIABLE, use
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedCompletion


WHERE = {
    "bash": 'eval "$(playhead completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(playhead completion zsh)"   # in ~/.zshrc',
    "fish": "playhead completion fish > ~/.config/fish/completions/playhead.fish",
}


@playhead_command("completion", short_help="Print a shell completion script")
@click.argument("shell", type=click.Choice(sorted(WHERE)))
def completion_command(session: Session, shell: str) -> None:
    """Print the completion script of a shell."""
    from playhead_cli.app import playhead

    use()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    complete = kind(playhead, {}, "playhead", VARIABLE)
    template = complete.source_template % complete.source_vars()
    if session.as_json:
        printed: PrintedCompletion = {
            "schema_version": 1,
            "shell": cast("Any", shell),
            "script": template,
        }
        session.print_json(printed)
        return
    sys.stdout.write(template if template.endswith("\n") else template + "\n")
    session.suggest(WHERE[shell])


@playhead_command("mcp", short_help="Serve runs to agents over MCP on stdio")
@click.option(
    "--url", help="Query API of a receiver. Default: that of the data folder, or an embedded one."
)
def mcp_command(session: Session, url: str | None) -> None:
    """Serve runs to an agent over MCP on stdin and stdout: lists, trees, messages, search, diff.

    If the query API requires a token, set PLAYHEAD_TOKEN (scope read). The receiver of the data
    folder does not require one.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the package mcp is not installed", hint="pip install 'playhead[mcp]'")
    from playhead_cli.mcp.server import QueryApi, mcp_server
    from playhead_cli.running.query_api import query_api
    from playhead_exporter.delivery import Trust

    given = session.settings
    trust = Trust(given.certificate, given.client_certificate, given.client_key)
    with query_api(session, url) as found:
        mcp_server(QueryApi(found.url, found.token, trust), version("playhead")).run("stdio")
