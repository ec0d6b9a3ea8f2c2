"""``playhead tail``: a run while it goes on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import verb
from playhead_receiver.cli.printing import print_lines
from playhead_receiver.cli.runs import parse_target, reading
from playhead_receiver.cli.session import Session
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_receiver.cli.following import Following, Moment
    from playhead_receiver.store.protocol import RunSummary, Store

POLL_S = 0.1
AT_ONCE = 1000
"""Changes that are read from the store in one go."""


@verb("tail", short_help="follow a run while it goes on")
@click.argument("target", metavar="[RUN]", required=False)
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=10, show_default=True, help="Of what has been."
)
def command(session: Session, target: str | None, lines: int) -> int:
    """Follow a run while it goes on; ends with it. ^C detaches, and the run continues."""
    wanted = parse_target(target)
    if wanted.is_file:
        raise UsageError("a tape file does not go on", hint=f"playhead show {wanted.run}")
    with reading(session) as store:
        run = store.resolve(wanted.run)
        try:
            for moment in _moments(store, run, lines):
                _print(session, moment)
        except KeyboardInterrupt:
            session.say(f"detached; {run.name} continues")
            return 0
        ended = store.resolve(run.trace_id)
    if not session.as_json:
        session.say(f"{ended.name} {ended.status}, {ended.steps} steps")
        session.suggest(f"playhead show {ended.name}")
    return 0


def _moments(store: Store, run: RunSummary, lines: int) -> Iterator[Moment]:
    """The last ``lines`` moments of what has been, then what comes, until the run has ended."""
    from playhead_receiver.cli.following import Following

    trace_id = bytes.fromhex(run.trace_id)
    following = Following(trace_id)
    position = store.position()
    yield from _so_far(store, run, following, lines)
    while True:
        over = store.resolve(run.trace_id).status != "running"
        moved = True
        while moved:
            moved = False
            for change in store.changes(position, AT_ONCE):
                position, moved = change.position, True
                yield from following.take(change.item)
        if over:
            return
        time.sleep(POLL_S)


def _so_far(store: Store, run: RunSummary, following: Following, lines: int) -> Iterator[Moment]:
    past: list[Moment] = []
    for instance in run.instances:
        for fact in store.tape(bytes.fromhex(instance)).facts():
            past += following.take(fact)
    for span in store.spans(bytes.fromhex(run.trace_id)):
        past += following.take(span)
    past.sort(key=lambda moment: moment.time_ns)
    yield from deque(past, maxlen=lines)


def _print(session: Session, moment: Moment) -> None:
    if session.as_json:
        session.print_json(moment.to_json())
        return
    from rich.text import Text

    from playhead_receiver.cli.views.tree import ERROR, FAINT, NUMBER
    from playhead_receiver.cli.views.words import clock

    line = Text(f"{clock(moment.time_ns)} ", style=FAINT)
    line.append(f"{moment.number} ", style=NUMBER)
    line.append(moment.name)
    said = moment.said or ("" if moment.what == "started" else moment.what)
    if said:
        line.append(f"  {said}", style=ERROR if moment.what == "failed" else "")
    print_lines(session, [line])
