"""``playhead demo``: bundled agents, recorded, shown, replayed, forked and kept as tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from playhead_cli.configuration import for_children
from playhead_cli.options import verb
from playhead_cli.session import Session
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.demo import Stage

PARTS = ("tour", "travel", "incident")

Stay = Literal["keep", "stop", "env"]


@verb("demo", short_help="record, show and replay bundled agents, with nothing else needed")
@click.argument("part", type=click.Choice(PARTS), required=False)
@click.option(
    "--keep",
    "stay",
    flag_value="keep",
    help="Leave the provider running, for programs in examples/ here; alone: only that.",
)
@click.option("--stop", "stay", flag_value="stop", help="Only end the provider that was left running.")
@click.option(
    "--env",
    "stay",
    flag_value="env",
    help='Only print the variables with which other programs find it: eval "$(playhead demo --env)".',
)
def command(session: Session, part: str | None, stay: Stay | None) -> int:
    """Bundled agents on this machine, against a provider that is bundled too.

    tour, where nothing is said: record, show, replay. travel: back to a step, with a change, and on.
    incident: a stuck agent, from the alarm to the test that keeps it mended.

    With --keep the agents are put into examples/ here, unless they are there, and the provider stays up
    in the background. playhead record, fork and resume of a program in that folder ask it, also where a
    key is set; but not where another address is set (OPENAI_BASE_URL, …).
    """
    if stay == "stop":
        return _stop(session)
    if stay == "env":
        return _print_variables(session)
    from playhead_cli import demo

    parts = {"tour": demo.run_demo, "travel": demo.run_travel, "incident": demo.run_incident}
    environ = {**os.environ, **for_children(session.resolved)}
    if stay is None:
        return parts[part or "tour"](demo.Stage(environ))
    from playhead_cli.demo.keeping import examples_here, freed_port

    examples = examples_here(Path.cwd())
    stage = demo.Stage(environ, examples, freed_port(session.data_dir))
    return (parts[part](stage) if part else 0) or _keep(session, stage)


def _keep(session: Session, stage: Stage) -> int:
    from playhead_cli.command_name import command_name
    from playhead_cli.demo.keeping import keep
    from playhead_cli.demo.shell import say

    kept = keep(session.data_dir, stage)
    examples = stage.agents
    own = command_name()
    say(f"The provider stays up on {kept.url}. What is in {examples.name}/ finds it by itself.")
    say(
        "next:",
        f'{own} record {examples.name}/weather_agent.py "I fly to Lima. What do I pack?"',
        f"{own} ls",
        f"{own} demo --stop",
    )
    return 0


def _stop(session: Session) -> int:
    from playhead_cli.demo.keeping import stop

    session.say("the demo's provider has ended" if stop(session.data_dir) else "none was running")
    return 0


def _print_variables(session: Session) -> int:
    """Print the variables of the kept provider. `UsageError` where none runs."""
    from playhead_cli.running.kept_provider import KeptProvider, variables

    kept = KeptProvider.read(session.data_dir)
    if kept is None or not kept.answers():
        raise UsageError("the demo's provider does not run", hint="playhead demo --keep")
    for name, value in variables(kept.url).items():
        click.echo(f"export {name}={value}")
    return 0
