"""``playhead gc``: delete runs whose time is over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import verb
from playhead_receiver.cli.session import Session
from playhead_semconv.errors import StoreBusy

if TYPE_CHECKING:
    from playhead_receiver.errands import Answer, Errand

SCHEMA_VERSION = 1


@verb("gc", short_help="delete runs whose time is over")
@click.option("--success", default="7d", show_default=True, help="How long successful runs are kept.")
@click.option("--failure", default="30d", show_default=True, help="All others.")
@click.option("--flagged", default="90d", show_default=True, help="Runs marked as flagged, at least.")
@click.option("--test", default="1d", show_default=True, help="Runs marked as a test.")
@click.option("--agent", metavar="NAME=TIME", multiple=True, help="All runs of one agent.")
@click.option(
    "--share", type=click.FloatRange(0, 1), default=1.0, help="Of successes; the rest as tests."
)
@click.option("--budget", metavar="SIZE", help="Above it the oldest runs go, e.g. 10G.")
@click.option("--mark", nargs=2, metavar="RUN WORD", help="Only mark a run: held, flagged or test.")
@click.option("--unmark", nargs=2, metavar="RUN WORD", help="Only take a mark off a run.")
@click.option("-n", "--dry-run", is_flag=True, help="Only list what would be deleted.")
def command(
    session: Session,
    success: str,
    failure: str,
    flagged: str,
    test: str,
    agent: tuple[str, ...],
    share: float,
    budget: str | None,
    mark: tuple[str, str] | None,
    unmark: tuple[str, str] | None,
    dry_run: bool,
) -> None:
    """Delete runs whose time is over, with everything that only they hold, and overwrite it.

    TIME is 90d, 12h, 30m or 10s after the run's end. A held run, and one that is running, is kept.
    A receiver that runs on the data folder is asked to do it.
    """
    from playhead_receiver.cli.views.words import count
    from playhead_receiver.errands import Collect
    from playhead_receiver.store import Query, open_store
    from playhead_receiver.store.retention import (
        Policy,
        duration_s,
        expired,
        names_of_runs,
        size_of,
    )
    from playhead_replay.forks.workspace import sweep

    by_agent = {name: duration_s(text) for name, _, text in (one.partition("=") for one in agent)}
    policy = Policy(
        success_s=duration_s(success),
        failure_s=duration_s(failure),
        flagged_s=duration_s(flagged),
        test_s=duration_s(test),
        agents_s=by_agent,
        success_share=share,
        budget_bytes=None if budget is None else size_of(budget),
    )
    if mark or unmark:
        _mark(session, mark or unmark or ("", ""), on=mark is not None)
        return
    if dry_run:
        store = open_store(session.store, read_only=True)
        try:
            runs = store.runs(Query(mode=None, limit=1 << 60))
            found = expired(runs, store.marks(), policy, time.time_ns())
        finally:
            store.close()
        if session.as_json:
            names = [run.name for run in found]
            session.print_json({"schema_version": SCHEMA_VERSION, "would_delete": names})
        for run in found if not session.as_json else ():
            click.echo(run.name)
        return
    done = _done(session, Collect(policy)).deleted
    store = open_store(session.store, read_only=True)
    try:
        folders = sweep(session.data_dir, lambda: names_of_runs(store))
    finally:
        store.close()
    if session.as_json:
        said = {"runs": done.runs, "spans": done.spans, "facts": done.facts, "blobs": done.blobs}
        said["fork_folders"] = len(folders)
        session.print_json({"schema_version": SCHEMA_VERSION, "deleted": said, "wiped": done.wiped})
        return
    session.say(
        f"deleted {count(done.runs, 'run')}: {count(done.spans, 'span')},"
        f" {count(done.facts, 'fact')}, {count(done.blobs, 'blob')}"
    )
    if folders:
        session.say(f"removed {count(len(folders), 'folder')} of forks that are gone")
    if session.settings.store:
        session.say("the database overwrites what was deleted in its own time: VACUUM")
    elif not done.wiped:
        session.say("somebody still reads an older state: run it again to overwrite what was deleted")


def _done(session: Session, errand: Errand) -> Answer:
    """Do an errand, or have the receiver do it that holds the data folder."""
    from playhead_receiver.access import Audit, TokenBook
    from playhead_receiver.access.database import AccessFile
    from playhead_receiver.errands import ask, do
    from playhead_receiver.keeping import BY_HAND
    from playhead_receiver.store import open_store

    try:
        store = open_store(session.store)
    except StoreBusy:
        return ask(session.data_dir, errand)
    access = AccessFile(session.data_dir)
    book, audit = TokenBook(access), Audit(access)

    def note(trace_id: str) -> None:
        if book.any_live():
            audit.note("", BY_HAND, "", "delete", trace_id)

    try:
        return do(store, errand, note)
    finally:
        access.close()
        store.close()


def _mark(session: Session, given: tuple[str, str], *, on: bool) -> None:
    from playhead_receiver.errands import Mark
    from playhead_receiver.store.upkeep import MARKS
    from playhead_semconv.errors import UsageError

    name, word = given
    if word not in MARKS:
        raise UsageError(f"{word} is no mark", hint=f"use one of: {', '.join(MARKS)}")
    run = _done(session, Mark(name, word, on)).run
    if session.as_json:
        session.print_json({"schema_version": SCHEMA_VERSION, "run": run, "mark": word, "on": on})
        return
    session.say(f"{run} is {word}" if on else f"{run} is not {word} any more")
