"""``playhead events``: list the facts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.step.moment import fact_lines
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_moment
from playhead_cli.targets.run_argument import opened_run, parse_target

if TYPE_CHECKING:
    from playhead_cli.json_output.moments import PrintedFact
    from playhead_core.facts import Fact
    from playhead_replay import Run


@playhead_command("events", short_help="List the facts of a run")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@click.option(
    "--between",
    nargs=2,
    metavar="FROM TO",
    help="Only facts after FROM and up to TO: steps, checkpoints, offsets (12.5s) or times.",
)
@click.option("--name", "names", multiple=True, help="Only facts of this name, such as playhead.effect.")
def command(
    session: Session, target: str | None, between: tuple[str, str] | None, names: tuple[str, ...]
) -> None:
    """List the facts of a run by time: requests, responses, effects, states, checkpoints.

    Shows the size of content, not the content. --json prints one fact per line.
    """
    with opened_run(session, parse_target(target)) as run:
        wanted = _facts(run, between, names)
        if session.as_json:
            for one in wanted:
                session.print_json(one)
            return
        print_lines(session, fact_lines(run, wanted), paged=True)


def _facts(run: Run, between: tuple[str, str] | None, names: tuple[str, ...]) -> Iterator[PrintedFact]:
    first, last = ({}, {}) if between is None else (find_moment(run, one)[0].ends for one in between)
    numbers = run.step_numbers()
    found: list[tuple[int, int, PrintedFact]] = []
    for tape in run.tapes:
        instance = tape.instance.hex()
        begin, end = first.get(instance, 0), last.get(instance, tape.last_seq + 1)
        for fact in tape.facts(begin - 1):
            if fact.seq >= end:
                break
            if not names or fact.name in names:
                step = numbers.get((instance, str(fact.exchange)))
                found.append((fact.time_ns, fact.seq, _fact(run, instance, fact, step)))
    found.sort(key=lambda one: one[:2])
    yield from (one for _, _, one in found)


def _fact(run: Run, instance: str, fact: Fact, step: int | None) -> PrintedFact:
    return {
        "schema_version": 1,
        "run": run.name,
        "instance": instance,
        "seq": fact.seq,
        "time_ns": fact.time_ns,
        "name": fact.name,
        "lane": f"{fact.lane:x}",
        "exchange": None if fact.exchange is None else f"{fact.exchange.kind}#{fact.exchange.ordinal}",
        "step": step,
        "size_bytes": None if fact.body is None else fact.body.size,
        "attributes": msgspec.to_builtins(fact.attributes),
    }
