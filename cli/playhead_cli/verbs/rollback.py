"""``playhead rollback``: a fork from a checkpoint."""

from __future__ import annotations

import click

from playhead_cli.completing.arguments import complete_run
from playhead_cli.options import verb
from playhead_cli.session import Session
from playhead_cli.targets.run_argument import parse_target
from playhead_cli.verbs.fork import command as fork
from playhead_semconv.errors import UsageError


@verb("rollback", short_help="take a run back to a checkpoint, and go on from there")
@click.argument("target", metavar="RUN", shell_complete=complete_run)
@click.option(
    "--to",
    metavar="CHECKPOINT",
    required=True,
    help="c1, c2, …, or an id in a store; a step is taken too, as by fork.",
)
@click.option("--in-place", is_flag=True, help="Work in the run's own folder, not in a copy of it.")
@click.option("--trust", is_flag=True, help="Run what a tape from elsewhere names.")
@click.pass_context
def command(
    ctx: click.Context, session: Session, target: str, to: str, in_place: bool, trust: bool
) -> int:
    """Play a run up to a checkpoint and go on from there for real, as a new run.

    What came after it stays as the old line: nothing is deleted. The same as playhead fork
    RUN:CHECKPOINT.
    """
    wanted = parse_target(target)
    if wanted.point:
        raise UsageError(
            "a rollback names its place once", hint=f"playhead rollback {wanted.run} --to {wanted.point}"
        )
    words = [wanted.run, "--at", to]
    words += ["--in-place"] * in_place + ["--trust"] * trust
    with fork.make_context("fork", words, parent=ctx.parent) as made:
        made.obj = session
        status: int = fork.invoke(made)
        return status
