"""``playhead checkpoint``: create a checkpoint of a running agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead_cli.control.orders import Operator, lease_s, orders, target_of
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_cli.json_output.controlled import PrintedMadeCheckpoint


@playhead_command("checkpoint", short_help="Create a checkpoint of a running agent")
@orders
@click.option("--label", default="", help="Label of the checkpoint.")
@click.option(
    "--wait",
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long to wait for the next step, at most 60s.",
)
def command(session: Session, target: str, url: str | None, label: str, wait: str) -> int:
    """Create a checkpoint before the agent's next request, and print its name.

    The agent continues; if it is paused, the checkpoint is created at once. It must be recorded with
    PLAYHEAD_CONTROL=on. Exit status 1 if the next step did not begin in time; the checkpoint is then
    created when it does.
    """
    run, halt = target_of(target)
    if halt:
        raise UsageError("a checkpoint is of the run as a whole", hint=f"playhead checkpoint {run}")
    made = Operator(session, url).order(run, "checkpoint", label=label, wait_s=lease_s(wait))
    name = made["name"]
    if session.as_json:
        printed: PrintedMadeCheckpoint = {"schema_version": 1, "run": run, **made}  # type: ignore[typeddict-item]
        session.print_json(printed)
    elif name is not None:
        click.echo(visible(str(name)))
        session.suggest(f"playhead state {run}:{name}")
    elif made["made"]:
        session.say("the checkpoint was created but not delivered yet")
        session.suggest(f"playhead checkpoints {run}")
    else:
        session.say("the agent has not reached its next step; the checkpoint will be created there")
    return 0 if made["made"] else 1
