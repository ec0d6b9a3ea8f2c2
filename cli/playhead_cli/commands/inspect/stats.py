"""``playhead stats``: aggregate runs: failures, tokens, cost, duration."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.text import Text

from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.columns import in_columns
from playhead_cli.output.words import took
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import reading, searchable
from playhead_core.errors import RunUnknown
from playhead_genai.prices import dollars
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.queries.sums import MOST_RUNS, no_runs, stats_of
from playhead_receiver.storage import Query

if TYPE_CHECKING:
    from playhead_receiver.queries.sums import By, RunStats, SummedRuns

WAYS = (
    *("agent", "model", "day", "hour", "minute", "version", "environment"),
    *("status", "provider", "tool", "error", "user", "conversation", "tag", "prompt"),
    *("prompt_version", "release", "failure", "none"),
)
COLUMNS = ("RUNS", "FAILED", "STEPS", "TOKENS", "COST", "P50", "P90", "P99")
FAILED = ("failure", "interrupted")
"""Statuses that count as failed."""


@playhead_command("stats", short_help="Aggregate runs: failures, tokens, cost, duration")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@click.option(
    "--by", type=click.Choice(WAYS), default="agent", show_default=True, help="Group by this field."
)
def command(session: Session, words: tuple[str, ...], by: By) -> None:
    """Aggregate runs: count, failures, steps, tokens, cost and duration.

    QUERY selects runs as in playhead ls: playhead stats agent:refund since:7d --by day. P50, P90 and
    P99 are duration percentiles. A run with several models, users, tags or other values counts in each
    of their groups.
    """
    asked = read_language(" ".join(words), Query(limit=MOST_RUNS))
    try:
        indexed = asked.text or asked.query.attributes
        with closing(searchable(session)) if indexed else reading(session) as store:
            found = stats_of(store, ask_runs(store, asked), by)
    except RunUnknown:
        if session.as_json:
            _print_json(session, no_runs())
            return
        session.say(f"no runs in {session.store_name}")
        session.suggest("playhead record SCRIPT")
        return
    if session.as_json:
        _print_json(session, found)
        return
    print_lines(session, _table(by, found))
    if found["truncated"]:
        session.say(f"these are the newest {MOST_RUNS} runs: narrow the query, e.g. since:7d")


def _print_json(session: Session, found: RunStats) -> None:
    session.print_json({"schema_version": 1, **msgspec.to_builtins(found)})


def _table(by: By, found: RunStats) -> list[Any]:
    """Return the lines: a group each, then the sum over all."""
    groups, total = found["groups"], found["total"]
    head = ("" if by == "none" else by.upper(), *COLUMNS)
    rows = [_row(one.key or "–", one) for one in groups] + [_row("all", total)]
    lines = in_columns((head, *rows))
    styles = ["dim", *[""] * len(groups), "bold"]
    return [Text(line, style=style) for line, style in zip(lines, styles, strict=True)]


def _row(name: str, group: SummedRuns) -> tuple[str, ...]:
    cost = "" if group.cost_usd is None else dollars(group.cost_usd)
    times = (group.duration_p50_ns, group.duration_p90_ns, group.duration_p99_ns)
    return (
        name,
        str(group.runs),
        str(sum(group.statuses.get(status, 0) for status in FAILED)),
        str(group.steps),
        f"{group.input_tokens}→{group.output_tokens}",
        cost + ("+" if group.unpriced_runs else ""),
        *("" if one is None else took(one) for one in times),
    )
