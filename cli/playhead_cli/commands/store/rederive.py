"""``playhead rederive``: re-derive model, tokens and cost from stored requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_query
from playhead_cli.session.options import limit_option, playhead_command
from playhead_cli.session.session import Session

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedRederivation


@playhead_command("rederive", short_help="Re-derive model, tokens and cost from stored requests")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(1_000_000, "runs")
def command(session: Session, words: tuple[str, ...], limit: int) -> int:
    """Re-derive model, tokens and cost of stored requests that no instrumentation described.

    The receiver does this once, on arrival. Use this command for runs stored earlier, or stored by a
    version that knew fewer providers. QUERY selects runs as in playhead ls. A receiver running on the
    data folder does the work.
    """
    from contextlib import closing

    from playhead_cli.output.words import count
    from playhead_cli.store_changes import carry_out
    from playhead_cli.targets.run_argument import reading, searchable
    from playhead_receiver.maintenance.jobs import Rederive
    from playhead_receiver.queries.asked_runs import ask_runs
    from playhead_receiver.queries.language import read_language
    from playhead_receiver.storage import Query

    asked = read_language(" ".join(words), Query(mode=None, limit=limit))
    if asked.text:
        with closing(searchable(session)) as found:
            traces = [run.trace_id for run in ask_runs(found, asked)]
    else:
        with reading(session) as store:
            traces = [run.trace_id for run in store.runs(asked.query)]
    calls = carry_out(session, Rederive(traces)).calls if traces else 0
    if session.as_json:
        printed: PrintedRederivation = {"schema_version": 1, "runs": len(traces), "calls": calls}
        session.print_json(printed)
    else:
        session.say(
            f"looked at {count(len(traces), 'run')}: {count(calls, 'call')} identified from requests"
        )
    return 0
