"""What texts and files say to type, held against the command line and the settings."""

from __future__ import annotations

from collections.abc import Sequence

import click

from playhead_cli.app import playhead
from playhead_cli.session.session import Session
from playhead_core.settings import DESCRIPTIONS, environment_name

VARIABLES = frozenset(map(environment_name, DESCRIPTIONS))
"""The names of all settings in the environment."""


def refused(words: Sequence[str]) -> str:
    """Why the command line does not accept ``playhead VERB …``; empty where it does."""
    command = playhead.get_command(click.Context(playhead), words[1])
    if command is None:
        return f"no command {words[1]}"
    rest = list(words[2:])
    if isinstance(command, click.Group):
        command, rest = command.get_command(click.Context(command), rest[0]), rest[1:]
        if command is None:
            return f"no {words[2]} of {words[1]}"
    try:
        command.make_context(words[1], rest, obj=Session())
    except click.ClickException as problem:
        return problem.format_message()
    return ""
