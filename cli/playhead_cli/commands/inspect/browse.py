"""``playhead browse``: step through a run in the terminal."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import Target, parse_target
from playhead_core.errors import UsageError


@playhead_command("browse", short_help="Step through a run in the terminal")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option("--at", metavar="POINT", help="Start at this point. Default: the first error, or the end.")
@click.option(
    "--url",
    help="Query API of a receiver, to control a live run. Default: that of the data folder.",
)
def command(session: Session, target: str | None, at: str | None, url: str | None) -> None:
    """Step backwards and forwards through a run, finished or live. Press ? for the keys.

    Shows messages, request, response and state of each step. Press x to fork at a step, or a to edit
    its request first. A live run can be paused and edited.
    """
    if importlib.util.find_spec("textual") is None:
        raise UsageError("the package textual is not installed", hint="pip install 'playhead[tui]'")
    wanted = parse_target(target, at)
    if session.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("browse needs a terminal", hint=f"playhead show {wanted.run}, also with --json")
    if not session.colored(sys.stdout):
        os.environ["NO_COLOR"] = "1"
    while True:
        following = _browse(session, wanted, url)
        if not following:
            return
        wanted = parse_target(following)


def _browse(session: Session, wanted: Target, url: str | None) -> str:
    """Browse one run. Returns the next one; empty if there is none."""
    from playhead_cli.browse.app import Browser
    from playhead_cli.browse.opened import opened
    from playhead_cli.targets.point_argument import find_point

    with opened(session, wanted) as source:
        begins = bool(source.run.steps or wanted.point)
        step = find_point(source.run, wanted.point or "error").step.number if begins else 0
        named = source.run.name if source.is_stored else wanted.run
        browser = Browser(session, source, named, step, url)
        found = browser.run()
    if browser.defect is not None:
        raise browser.defect
    return found or ""
