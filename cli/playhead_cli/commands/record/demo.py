"""``playhead demo``: record, show and replay bundled agents; needs no API key."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from playhead_cli import demo
from playhead_cli.demo.keeping import examples_here, freed_port, keep, stop
from playhead_cli.demo.shell import say
from playhead_cli.running.kept_provider import KeptProvider, variables
from playhead_cli.session.configuration import for_children
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session, command_name
from playhead_core.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.demo import Stage
    from playhead_cli.json_output.environment import PrintedDemo

PARTS = ("tour", "travel", "incident")

Stay = Literal["keep", "stop", "env"]


@playhead_command("demo", short_help="Record, show and replay bundled agents; needs no API key")
@click.argument("part", type=click.Choice(PARTS), required=False)
@click.option(
    "--keep",
    "stay",
    flag_value="keep",
    help="Start the provider for programs in examples/ and leave it running.",
)
@click.option("--stop", "stay", flag_value="stop", help="Stop the provider that --keep left running.")
@click.option(
    "--env",
    "stay",
    flag_value="env",
    help="Print environment variables that point programs to the provider: eval "
    '"$(playhead demo --env)".',
)
def command(session: Session, part: str | None, stay: Stay | None) -> int:
    """Run bundled agents against a bundled provider on this machine.

    PART is tour (the default): record, show and replay a run; travel: go back to a step, change it
    and continue; or incident: a stuck agent, from the alert to the regression test.

    --keep copies the agents to examples/ in this folder, if they are not there, and leaves the
    provider running. playhead record, fork and resume use that provider for programs in examples/,
    even if an API key is set, but not if a base URL is set (OPENAI_BASE_URL, …).
    """
    if stay == "env":
        return _print_variables(session)
    with _shown_on_stderr() if session.as_json else nullcontext():
        status = _done(session, part, stay)
    if session.as_json:
        played = None if stay == "stop" else part or (None if stay else "tour")
        _print_object(session, played, _variables(session), status)
    return status


@contextmanager
def _shown_on_stderr() -> Generator[None]:
    """Have everything that is shown, by other programs too, go to stderr."""
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)


def _done(session: Session, part: str | None, stay: Stay | None) -> int:
    """Run the chosen part of the demo. Return the exit status."""
    if stay == "stop":
        return _stop(session)
    parts = {"tour": demo.run_demo, "travel": demo.run_travel, "incident": demo.run_incident}
    environ = {**os.environ, **for_children(session.resolved)}
    if stay is None:
        return parts[part or "tour"](demo.Stage(environ))
    examples = examples_here(Path.cwd())
    stage = demo.Stage(environ, examples, freed_port(session.data_dir))
    return (parts[part](stage) if part else 0) or _keep(session, stage)


def _keep(session: Session, stage: Stage) -> int:
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
    session.say("the demo's provider was stopped" if stop(session.data_dir) else "none was running")
    return 0


def _variables(session: Session) -> dict[str, str] | None:
    """Return the variables of the kept provider; None if none runs."""
    kept = KeptProvider.read(session.data_dir)
    return variables(kept.url) if kept is not None and kept.answers() else None


def _print_variables(session: Session) -> int:
    """Print the variables of the kept provider. `UsageError` if none runs."""
    found = _variables(session)
    if found is None:
        raise UsageError("the demo's provider is not running", hint="playhead demo --keep")
    if session.as_json:
        _print_object(session, None, found, 0)
        return 0
    for name, value in found.items():
        click.echo(f"export {name}={value}")
    return 0


def _print_object(
    session: Session, part: str | None, variables: dict[str, str] | None, exit_code: int
) -> None:
    printed: PrintedDemo = {
        "schema_version": 1,
        "part": cast("Any", part),
        "variables": variables,
        "exit_code": exit_code,
    }
    session.print_json(printed)
