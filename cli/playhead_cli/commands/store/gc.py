"""``playhead gc``: delete expired runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import msgspec

from playhead_cli.output.words import count, size
from playhead_cli.session.options import option_groups, playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import carry_out, confirm_deletion, report_deleted, user
from playhead_core.errors import UsageError
from playhead_receiver.maintenance.jobs import Collect, Mark
from playhead_receiver.storage import Query, open_store
from playhead_receiver.storage.api.retention import MARKS, Retention
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.retention import (
    KEEP_ALL,
    above_budget,
    duration_s,
    expired,
    policy_of,
    size_of,
)

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedMark, PrintedPreview
    from playhead_receiver.storage.retention import Policy


@dataclass(frozen=True, slots=True)
class RetentionOptions:
    """Options of the retention policy: times, a share from 0 to 1, a size."""

    success: str | None
    failure: str | None
    flagged: str | None
    test: str | None
    agent: tuple[str, ...]
    """``NAME=TIME``."""
    share: float | None
    budget: str | None

    def times(self) -> dict[str, str]:
        """Return the times that were set, by outcome of a run."""
        given = {
            "success": self.success,
            "failure": self.failure,
            "flagged": self.flagged,
            "test": self.test,
        }
        return {name: text for name, text in given.items() if text is not None}


@dataclass(frozen=True, slots=True)
class MarkOptions:
    """Options that add or remove a mark: run and word."""

    mark: tuple[str, str] | None
    unmark: tuple[str, str] | None


@playhead_command("gc", short_help="Delete expired runs")
@click.option("--success", metavar="TIME", help="Keep successful runs this long.")
@click.option("--failure", metavar="TIME", help="Keep all other runs this long.")
@click.option("--flagged", metavar="TIME", help="Keep runs marked flagged at least this long.")
@click.option("--test", metavar="TIME", help="Keep runs marked test this long.")
@click.option(
    "--agent", metavar="NAME=TIME", multiple=True, help="Keep all runs of one agent this long."
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1),
    help="Share of successful runs to keep; the rest count as test.",
)
@click.option("--budget", metavar="SIZE", help="Delete the oldest runs above this size, e.g. 10G.")
@click.option(
    "--mark", nargs=2, metavar="RUN WORD", help="Mark a run (held, flagged, test, imported), and exit."
)
@click.option("--unmark", nargs=2, metavar="RUN WORD", help="Remove a mark from a run, and exit.")
@click.option("--dry-run", is_flag=True, help="List the runs without deleting them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@option_groups(kept=RetentionOptions, marking=MarkOptions)
def command(
    session: Session, kept: RetentionOptions, marking: MarkOptions, dry_run: bool, yes: bool
) -> int:
    """Delete expired runs, with all data that only they use, and overwrite it.

    TIME counts from the end of a run: 90d, 12h, 30m, 10s, or forever. Defaults come from the setting
    retention (success=7d failure=30d flagged=90d test=1d). Held and running runs are kept. A receiver
    running on the data folder does the work.
    """
    if given := marking.mark or marking.unmark:
        _mark(session, given, on=marking.mark is not None)
        return 0
    policy = _policy(session, kept)
    store = needed(open_store(session.store, read_only=True), Retention)
    try:
        runs = store.runs(Query(mode=None, limit=1 << 60))
        names = [run.name for run in expired(runs, store.marks(), policy, time.time_ns())]
        above = above_budget(store, policy)
    finally:
        store.close()
    if dry_run and session.as_json:
        printed: PrintedPreview = {
            "schema_version": 1,
            "would_delete": names,
            "above_budget_bytes": above,
        }
        session.print_json(printed)
        return 0
    if above and not session.as_json:
        session.say(f"the store is {size(above)} above its budget: the oldest runs go until it is not")
    if dry_run:
        for name in names:
            click.echo(name)
        return 0
    if (names or above) and not yes:
        what = count(len(names), "run") if names else "the oldest runs"
        if not confirm_deletion(session, names, what, "add --yes, or list the runs with --dry-run"):
            return 1
    done = carry_out(session, Collect(policy, user())).deleted
    report_deleted(session, done)
    return 0


def _policy(session: Session, kept: RetentionOptions) -> Policy:
    base = policy_of(session.settings.retention) or KEEP_ALL
    said: dict[str, Any] = {f"{name}_s": duration_s(text) for name, text in kept.times().items()}
    by_agent = dict(base.agents_s)
    for one in kept.agent:
        name, _, text = one.rpartition("=")
        if not name:
            raise UsageError(f"--agent {one} has no time", hint=f"--agent {one or 'NAME'}=1d")
        by_agent[name] = duration_s(text)
    if kept.share is not None:
        said["success_share"] = kept.share
    if kept.budget is not None:
        said["budget_bytes"] = size_of(kept.budget)
    return msgspec.structs.replace(base, agents_s=by_agent, **said)


def _mark(session: Session, given: tuple[str, str], *, on: bool) -> None:
    name, word = given
    if word not in MARKS:
        raise UsageError(f"{word} is not a mark", hint=f"use one of: {', '.join(MARKS)}")
    run = carry_out(session, Mark(name, word, on)).run
    if session.as_json:
        printed: PrintedMark = {"schema_version": 1, "run": run, "mark": word, "on": on}
        session.print_json(printed)
        return
    session.say(f"{run} is {word}" if on else f"{run} is not {word} any more")
