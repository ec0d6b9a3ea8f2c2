"""``playhead tail``: a run while it goes on, or all that are asked for."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from playhead_cli.options import verb
from playhead_cli.printing import print_lines
from playhead_cli.session import Session
from playhead_cli.targets.run_argument import Target, parse_target, reading
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from playhead_cli.targets.live_fold import Following, Moment
    from playhead_receiver.store.protocol.store import Store
    from playhead_receiver.store.values.run_summaries import Query, RunSummary

POLL_S = 0.1
AT_ONCE = 1000
"""Changes that are read from the store in one go."""
RUNS_AT_ONCE = 1000
"""Runs that are followed; of more, those that came last."""


@verb("tail", short_help="follow runs while they go on")
@click.argument("words", metavar="[RUN | QUERY]", nargs=-1)
@click.option(
    "-n", "--lines", type=click.IntRange(0), default=10, show_default=True, help="Of what has been."
)
def command(session: Session, words: tuple[str, ...], lines: int) -> int:
    """Follow a run while it goes on; ends with it. ^C detaches, and the run continues.

    A QUERY, fields as those of playhead ls, follows all its runs, those that are still to come too:
    playhead tail agent:refund model:gpt-5.5.
    """
    from playhead_receiver.asking.language import has_fields

    text = " ".join(words)
    try:
        if has_fields(text):
            _follow_all(session, text, lines)
            return 0
        return _follow(session, parse_target(text), lines)
    except KeyboardInterrupt:
        return 0


def _follow(session: Session, wanted: Target, lines: int) -> int:
    if wanted.is_file:
        raise UsageError("a tape file does not go on", hint=f"playhead show {wanted.run}")
    with reading(session) as store:
        run = store.resolve(wanted.run)
        try:
            for moment in _moments(store, run, lines):
                _print(session, run.name, moment)
        except KeyboardInterrupt:
            session.say(f"detached; {run.name} continues")
            return 0
        ended = store.resolve(run.trace_id)
    if not session.as_json:
        session.say(f"{ended.name} {ended.status}, {ended.steps} steps")
        session.suggest(f"playhead show {ended.name}")
    return 0


def _follow_all(session: Session, text: str, lines: int) -> None:
    from playhead_receiver.asking.language import read_language
    from playhead_receiver.store import Query

    asked = read_language(text, Query(mode=None))
    if asked.text:
        raise UsageError("what is to be said cannot be waited for", hint="use fields: agent:NAME")
    with reading(session) as store:
        for name, moment in _moments_of_all(store, asked.query, lines):
            _print(session, name, moment, named=True)


def _moments(store: Store, run: RunSummary, lines: int) -> Iterator[Moment]:
    """The last ``lines`` moments of what has been, then what comes, until the run has ended."""
    from playhead_cli.targets.live_fold import Following

    following = Following(bytes.fromhex(run.trace_id))
    position = store.position()
    yield from deque(_so_far(store, run, following), maxlen=lines)
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


def _moments_of_all(store: Store, query: Query, lines: int) -> Iterator[tuple[str, Moment]]:
    """The same of all runs of a query, each with the run's name; without an end.

    A run that is asked for once is followed from then on, whatever becomes of it.
    """
    from playhead_cli.targets.live_fold import Following
    from playhead_receiver.asking.watched_runs import Watched

    watched = Watched(store, query)
    followed: OrderedDict[bytes, tuple[str, Following]] = OrderedDict()

    def begin(run: RunSummary) -> list[tuple[str, Moment]]:
        trace_id = bytes.fromhex(run.trace_id)
        followed[trace_id] = run.name, Following(trace_id)
        if len(followed) > RUNS_AT_ONCE:
            followed.popitem(last=False)
        return [(run.name, moment) for moment in _so_far(store, run, followed[trace_id][1])]

    position = store.position()
    running = [run for run in store.runs(query) if run.status == "running"]
    past = [one for run in running for one in begin(run)]
    yield from deque(sorted(past, key=lambda one: one[1].time_ns), maxlen=lines)
    while True:
        moved = False
        for change in store.changes(position, AT_ONCE):
            position, moved = change.position, True
            trace_id = change.item.trace_id
            if trace_id in followed:
                name, following = followed[trace_id]
                yield from ((name, moment) for moment in following.take(change.item))
            elif (run := watched.run(trace_id)) is not None:
                yield from begin(run)
        if not moved:
            time.sleep(POLL_S)


def _so_far(store: Store, run: RunSummary, following: Following) -> list[Moment]:
    past: list[Moment] = []
    for instance in run.instances:
        for fact in store.tape(bytes.fromhex(instance)).facts():
            past += following.take(fact)
    for span in store.spans(bytes.fromhex(run.trace_id)):
        past += following.take(span)
    return sorted(past, key=lambda moment: moment.time_ns)


def _print(session: Session, run: str, moment: Moment, *, named: bool = False) -> None:
    """A line of a moment; ``named``: with its run."""
    if session.as_json:
        session.print_json({"run": run, **moment.to_json()})
        return
    from rich.text import Text

    from playhead_cli.views.styles import ERROR, FAINT, NUMBER
    from playhead_cli.views.words import clock

    line = Text(f"{clock(moment.time_ns)} ", style=FAINT)
    if named:
        line.append(f"{run} ", style="bold")
    line.append(f"{moment.number} ", style=NUMBER)
    line.append(moment.name)
    said = moment.said or ("" if moment.what == "started" else moment.what)
    if said:
        line.append(f"  {said}", style=ERROR if moment.what == "failed" else "")
    print_lines(session, [line])
