"""``playhead completion``: print a shell completion script."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import click
from click.shell_completion import get_completion_class

from playhead_cli.completion.shells import VARIABLE, use
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session

if TYPE_CHECKING:
    from playhead_cli.json_output.environment import PrintedCompletion

WHERE = {
    "bash": 'eval "$(playhead completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(playhead completion zsh)"   # in ~/.zshrc',
    "fish": "playhead completion fish > ~/.config/fish/completions/playhead.fish",
}


@playhead_command("completion", short_help="Print a shell completion script")
@click.argument("shell", type=click.Choice(sorted(WHERE)))
def command(session: Session, shell: str) -> None:
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
