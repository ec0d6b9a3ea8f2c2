"""``playhead demo``: bundled agents, recorded, shown, replayed, forked and kept as tests."""

from __future__ import annotations

import os

import click

from playhead_cli.configuration import for_children
from playhead_cli.options import verb
from playhead_cli.session import Session

PARTS = ("tour", "travel", "incident")


@verb("demo", short_help="record, show and replay bundled agents, with nothing else needed")
@click.argument("part", type=click.Choice(PARTS), default=PARTS[0], required=False)
def command(session: Session, part: str) -> int:
    """Bundled agents on this machine, against a provider that is bundled too.

    tour: record, show, replay. travel: back to a step, with a change, and on. incident: a stuck agent,
    from the alarm to the test that keeps it mended.
    """
    from playhead_cli import demo

    parts = {"tour": demo.run_demo, "travel": demo.run_travel, "incident": demo.run_incident}
    return parts[part](environ={**os.environ, **for_children(session.resolved)})
