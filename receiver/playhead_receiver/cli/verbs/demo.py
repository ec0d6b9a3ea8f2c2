"""``playhead demo``: bundled agents, recorded, shown and replayed."""

from __future__ import annotations

import os

from playhead_receiver.cli.configuration import for_children
from playhead_receiver.cli.options import verb
from playhead_receiver.cli.session import Session


@verb("demo", short_help="record, show and replay bundled agents, with nothing else needed")
def command(session: Session) -> int:
    """Record, show and replay bundled agents on this machine, against a provider that is bundled too."""
    from playhead_receiver.demo import run_demo

    return run_demo(environ={**os.environ, **for_children(session.resolved)})
