"""``playhead ls``: list runs, newest first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from playhead_cli.completion.arguments import complete_agent, complete_query
from playhead_cli.output.columns import padded, widths_of
from playhead_cli.output.styles import STATUS_STYLES
from playhead_cli.output.words import age, cost
from playhead_cli.session.options import limit_option, option_groups, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import origin_name, reading, searchable
from playhead_core.errors import RunUnknown
from playhead_receiver.queries.activity import activity_of
from playhead_receiver.queries.language import read_list
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.queries.run_items import run_items
from playhead_receiver.storage import Query
from playhead_receiver.storage.content.references import References

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedRuns
    from playhead_receiver.storage import Store
    from playhead_receiver.storage.values.run_summaries import Query, RunSummary

COLUMNS = (
    "NAME",
    "STATUS",
    "AGE",
    "STEPS",
    "TOKENS",
    "COST",
    "TYPE",
    "FROM",
    "ERROR",
    "FAILURES",
    "NOW",
    "MARKS",
)
LEFT_OUT_FIRST = tuple(map(COLUMNS.index, ("TYPE", "FAILURES", "TOKENS", "COST", "STEPS", "AGE")))
"""Columns that a narrow terminal does without."""
LONGEST_NAME = 40
"""Characters of agent types, of failures, and of what a run does."""
NOTHING: Mapping[str, str] = {}
SORTS = ("started", "duration", "cost", "tokens", "steps", "errors")
STATUSES = ("running", "success", "failure", "partial", "interrupted")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options that select, sort and limit runs."""

    agent: str | None
    status: Any
    everything: bool
    sort: Any
    ascending: bool
    limit: int

    def query(self) -> Query:
        """Return the same as a question to a store."""
        return Query(
            agent=self.agent,
            status=self.status,
            mode=None if self.everything else "record",
            sort=self.sort,
            ascending=self.ascending,
            limit=self.limit,
        )


@playhead_command("ls", short_help="List runs, newest first")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@click.option("--agent", shell_complete=complete_agent, help="Only runs of this agent.")
@click.option("--status", type=click.Choice(STATUSES), help="Only runs with this status.")
@click.option(
    "--all", "everything", is_flag=True, help="Include replays, services and runs without steps."
)
@click.option("--sort", type=click.Choice(SORTS), default="started", show_default=True)
@click.option("--ascending", is_flag=True, help="Sort in ascending order.")
@limit_option(50, "runs")
@option_groups(listed=ListOptions)
def command(session: Session, words: tuple[str, ...], listed: ListOptions) -> None:
    """List runs, newest first.

    Without QUERY and options, replays, services and successful runs without steps are hidden.

    All terms of QUERY must match: playhead ls agent:refund errors:yes tool:search since:2d
    'cost>=0.5' 'tokens>=1000' '"order 81"'. Fields are agent, agent_type, version, release, env,
    user, session, conversation, tag, prompt, prompt_version, model, provider, tool, error, failure,
    status, mode, errors, loop, stuck, mark, level, since, until, duration, cost, tokens, steps; of
    what programs report goal, phase, decision and signal; root:RUN lists RUN and all that it
    triggered. A name with a dot is an attribute of a span or resource: customer.tier:gold, .plan:pro;
    score.NAME is an evaluation. A term without a field searches the text of the runs.
    """
    asked = read_list(" ".join(words), listed.query())
    indexed = asked.text or asked.query.attributes
    try:
        with closing(searchable(session)) if indexed else reading(session) as store:
            runs = list(ask_runs(store, asked))
            if session.as_json:
                session.print_json(_printed(session, store, runs))
                return
    except RunUnknown:
        runs = []
        if session.as_json:
            session.print_json({"schema_version": 1, "runs": []})
            return
    if not runs and (words or listed.agent or listed.status):
        session.say(f"no such runs in {session.store_name}")
        if asked.query.attributes:
            name = asked.query.attributes[0].name
            session.say(f"{name} is the name of an attribute; put text with a colon in quotes")
        return
    if not runs:
        idle = _has_runs(session)
        session.say(f"no runs {'with steps ' if idle else ''}in {session.store_name}")
        session.suggest("playhead ls --all" if idle else "playhead record SCRIPT")
        return
    now_ns = time.time_ns()
    doing = _doing(session, runs, now_ns)
    print_lines(session, table(runs, _origins(session, runs), now_ns, session.width, doing))
    session.suggest(f"playhead show {runs[0].name}")


def _has_runs(session: Session) -> bool:
    try:
        with reading(session) as store:
            return any(store.runs(Query(limit=1)))
    except RunUnknown:
        return False


def _printed(session: Session, store: Store, runs: list[RunSummary]) -> PrintedRuns:
    """Return runs as an object of plain values."""
    references = References.named(session.settings.references)
    return {"schema_version": 1, "runs": run_items(store, runs, references)}


def _origins(session: Session, runs: list[RunSummary]) -> dict[str, str]:
    if not any(run.origin for run in runs):
        return {}
    with reading(session) as store:
        return {run.trace_id: origin_name(store, run.origin) for run in runs if run.origin}


def _doing(session: Session, runs: list[RunSummary], now_ns: int) -> dict[str, str]:
    """Return what running runs do and since when, by trace id: ``tool search 41s``."""
    running = [run for run in runs if run.status == "running"]
    if not running:
        return {}
    found: dict[str, str] = {}
    with reading(session) as store:
        for run in running:
            if (now := activity_of(store, run)) is not None:
                since_ns = now.progress_ns if now.what == "stream" else now.since_ns
                words = [now.what, now.name[:LONGEST_NAME], age(max(now_ns - since_ns, 0))]
                stuck = f" ({run.stuck.replace('_', ' ')})" if run.stuck else ""
                found[run.trace_id] = " ".join(word for word in words if word) + stuck
    return found


def _found(run: RunSummary) -> str:
    """Return a loop or a failure of a run, and how many more there are."""
    found = [*(f"loop {one}" for one in run.loop_names), *run.failure_codes]
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return f"{found[0][:LONGEST_NAME]}{more}" if found else ""


def table(
    runs: list[RunSummary],
    origins: Mapping[str, str],
    now_ns: int,
    width: int | None = None,
    doing: Mapping[str, str] = NOTHING,
) -> list[Any]:
    """Return the lines of the listing, columns aligned.

    ``origins``: names of the original runs, by trace id. ``width``: of a terminal; less
    important columns make room for others. ``doing``: what running runs do, by trace id.
    """
    rows = [
        (
            run.name,
            run.status + (" (gaps)" if run.missing else ""),
            age(now_ns - run.started_ns),
            str(run.steps),
            f"{run.input_tokens}→{run.output_tokens}" if run.input_tokens or run.output_tokens else "",
            cost(run),
            ",".join(run.agent_types)[:LONGEST_NAME],
            origins.get(run.trace_id, ""),
            run.error_types[-1] if run.status == "failure" and run.error_types else "",
            _found(run),
            doing.get(run.trace_id, ""),
            ",".join(run.marks),
        )
        for run in runs
    ]
    shown = [index for index in range(len(COLUMNS)) if index < 5 or any(row[index] for row in rows)]
    widths = widths_of((COLUMNS, *rows))
    for index in LEFT_OUT_FIRST:
        if width is not None and sum(widths[one] + 2 for one in shown) - 2 > width and index in shown:
            shown.remove(index)
    lines = [
        Text("  ".join(padded(COLUMNS[index], widths[index]) for index in shown).rstrip(), style="dim")
    ]
    for run, row in zip(runs, rows, strict=True):
        line = Text()
        for place, index in enumerate(shown):
            style = STATUS_STYLES.get(run.status, "") if index == 1 else "bold" if index == 0 else ""
            last = place == len(shown) - 1
            line.append(row[index] if last else padded(row[index], widths[index]) + "  ", style=style)
        line.rstrip()
        lines.append(line)
    return lines
