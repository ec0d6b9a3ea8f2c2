"""``playhead rollback``: return to a checkpoint and continue live."""

from __future__ import annotations

import click

from playhead_cli.commands.replay.fork import command as fork
from playhead_cli.completion.arguments import complete_run
from playhead_cli.session.options import playhead_command, run_instead
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import parse_target
from playhead_core.errors import UsageError


@playhead_command("rollback", short_help="Return to a checkpoint and continue live")
@click.argument("target", metavar="RUN", shell_complete=complete_run)
@click.option(
    "--to",
    metavar="CHECKPOINT",
    required=True,
    help="Checkpoint: c1, c2, …, or its id in a store; or a step.",
)
@click.option("--in-place", is_flag=True, help="Run in the original working folder, not in a copy.")
@click.option(
    "--trust", is_flag=True, help="Run the program of a tape that was recorded on another machine."
)
@click.pass_context
def command(
    ctx: click.Context, session: Session, target: str, to: str, in_place: bool, trust: bool
) -> int:
    """Replay a run up to a checkpoint and continue live from there, as a new run.

    Nothing is deleted: the original run keeps what followed. Same as playhead fork RUN:CHECKPOINT.
    """
    wanted = parse_target(target)
    if wanted.point:
        raise UsageError(
            "name the checkpoint once", hint=f"playhead rollback {wanted.run} --to {wanted.point}"
        )
    words = [wanted.run, "--at", to]
    words += ["--in-place"] * in_place + ["--trust"] * trust
    return run_instead(ctx, session, fork, words)
