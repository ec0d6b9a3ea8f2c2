"""``playhead tail``: follow live runs."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, Self

import click

from playhead_cli.completion.arguments import complete_run_or_query
from playhead_cli.output.step.step_lines import StepLines
from playhead_cli.session.options import limit_option, playhead_command
from playhead_cli.session.session import Session
from playhead_cli.targets.live_fold import Following
from playhead_cli.targets.run_argument import Target, parse_target, reading
from playhead_core.errors import UsageError
from playhead_receiver.queries.language import has_fields, read_language
from playhead_receiver.queries.matching_runs import Watched
from playhead_receiver.storage import Query

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedMoment
    from playhead_cli.targets.live_fold import Moment
    from playhead_receiver.storage.api.store import Store
    from playhead_receiver.storage.values.run_summaries import Query, RunSummary

POLL_S = 0.1
AT_ONCE = 1000
"""Changes that are read from the store in one go."""
RUNS_AT_ONCE = 1000
"""Largest number of runs to follow; the newest are preferred."""


@playhead_command("tail", short_help="Follow live runs")
@click.argument("words", metavar="[RUN | QUERY]", nargs=-1, shell_complete=complete_run_or_query)
@limit_option(10, "steps of what has been", least=0)
def command(session: Session, words: tuple[str, ...], limit: int) -> int:
    """Follow a run, one line per step, until it ends. ^C detaches; the run continues.

    A QUERY with the fields of playhead ls follows all matching runs, including new ones: playhead
    tail agent:refund model:gpt-5.5.
    """
    text = " ".join(words)
    try:
        if has_fields(text):
            _follow_all(session, text, limit)
            return 0
        return _follow(session, parse_target(text), limit)
    except KeyboardInterrupt:
        return 0


class Printer(Protocol):
    """Prints the events of runs."""

    def past(self, moments: Iterable[tuple[str, Moment]], most: int) -> None:
        """Print the last earlier events, at most ``most``."""
        ...

    def take(self, run: str, moment: Moment) -> None:
        """Print a new event."""
        ...


class JsonLines:
    """Prints one event per line, as JSON. Use as a context manager."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        pass

    def past(self, moments: Iterable[tuple[str, Moment]], most: int) -> None:
        """Print the last events."""
        for run, moment in deque(sorted(moments, key=lambda one: one[1].time_ns), maxlen=most):
            self.take(run, moment)

    def take(self, run: str, moment: Moment) -> None:
        """Print an event."""
        printed: PrintedMoment = {
            "schema_version": 1,
            "run": run,
            "time_ns": moment.time_ns,
            "step": moment.number,
            "event": moment.what,
            "name": moment.name,
            "detail": moment.said or None,
        }
        self._session.print_json(printed)


def _printer(session: Session, *, named: bool = False) -> AbstractContextManager[Printer]:
    if session.as_json:
        return JsonLines(session)
    return StepLines(session, named=named)


def _follow(session: Session, wanted: Target, limit: int) -> int:
    if wanted.is_file:
        raise UsageError("a tape file is not a live run", hint=f"playhead show {wanted.run}")
    with reading(session) as store:
        run = store.resolve(wanted.run)
        following, position = Following(bytes.fromhex(run.trace_id)), store.position()
        try:
            with _printer(session) as printer:
                printer.past(_so_far(store, run, following), limit)
                for moment in _coming(store, run, following, position):
                    printer.take(run.name, moment)
        except KeyboardInterrupt:
            session.say(f"detached; {run.name} continues")
            return 0
        ended = store.resolve(run.trace_id)
    if not session.as_json:
        session.say(f"{ended.name} {ended.status}, {ended.steps} steps")
        session.suggest(f"playhead show {ended.name}")
    return 0


def _follow_all(session: Session, text: str, limit: int) -> None:
    asked = read_language(text, Query(mode=None))
    if asked.text:
        raise UsageError("a text search cannot be followed", hint="use fields: agent:NAME")
    with reading(session) as store, _printer(session, named=True) as printer:
        _print_all(store, asked.query, printer, limit)


def _coming(store: Store, run: RunSummary, following: Following, position: int) -> Iterator[Moment]:
    """Yield the events after a position until the run has ended."""
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


def _print_all(store: Store, query: Query, printer: Printer, limit: int) -> None:
    """Print the events of all runs of a query, forever.

    A run that matched once is followed from then on, even if it no longer matches.
    """
    watched = Watched(store, query)
    followed: OrderedDict[bytes, tuple[str, Following]] = OrderedDict()

    def begin(run: RunSummary) -> list[tuple[str, Moment]]:
        trace_id = bytes.fromhex(run.trace_id)
        followed[trace_id] = run.name, Following(trace_id)
        if len(followed) > RUNS_AT_ONCE:
            followed.popitem(last=False)
        return _so_far(store, run, followed[trace_id][1])

    position = store.position()
    running = [run for run in store.runs(query) if run.status == "running"]
    printer.past([one for run in running for one in begin(run)], limit)
    while True:
        moved = False
        for change in store.changes(position, AT_ONCE):
            position, moved = change.position, True
            trace_id = change.item.trace_id
            if trace_id in followed:
                name, following = followed[trace_id]
                for moment in following.take(change.item):
                    printer.take(name, moment)
            elif (run := watched.run(trace_id)) is not None:
                for name, moment in begin(run):
                    printer.take(name, moment)
        if not moved:
            time.sleep(POLL_S)


def _so_far(store: Store, run: RunSummary, following: Following) -> list[tuple[str, Moment]]:
    """Return the events of a run so far, with its name, in order of time."""
    past: list[Moment] = []
    for instance in run.instances:
        for fact in store.tape(bytes.fromhex(instance)).facts():
            past += following.take(fact)
    for span in store.spans(bytes.fromhex(run.trace_id)):
        past += following.take(span)
    return [(run.name, moment) for moment in sorted(past, key=lambda moment: moment.time_ns)]
