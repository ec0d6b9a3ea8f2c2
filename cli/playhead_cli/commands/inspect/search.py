"""``playhead search``: search the text of all runs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.search_hits import passage_lines, place_of
from playhead_cli.output.words import count
from playhead_cli.session.options import limit_option, playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import searchable
from playhead_core.errors import UsageError
from playhead_receiver.maintenance.jobs import Unindex
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.search_hits import find_text_hits
from playhead_receiver.storage import Query
from playhead_receiver.storage.content.references import References

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedIndex


@playhead_command("search", short_help="Search the text of all runs")
@click.argument("words", nargs=-1, shell_complete=complete_query)
@limit_option(20, "texts")
@click.option("--rebuild", is_flag=True, help="Rebuild the search index from the store, and exit.")
def command(session: Session, words: tuple[str, ...], limit: int, rebuild: bool) -> int:
    """Find texts that contain all WORDS, in the newest run first. WORD* matches any ending.

    A text that a run repeats is listed once, at its first step. Quotes make a phrase; fields select
    runs: playhead search '"order 81"' agent:refund. Exit status 1 if nothing is found. --json prints
    one object per line.
    """
    if rebuild:
        return _rebuild(session)
    text = " ".join(words)
    asked = read_language(text, Query(limit=limit))
    if not asked.text:
        instead = f"playhead ls {shlex.quote(text)}" if text else "playhead search WORD"
        raise UsageError("no word to search for", hint=instead)
    store = searchable(session)
    try:
        found = find_text_hits(store, asked, References.named(session.settings.references))
        behind = store.lag().groups
    finally:
        store.close()
    if session.as_json:
        for one in found:
            session.print_json({"schema_version": 1, **one})
    else:
        print_lines(session, passage_lines(found, session.width), paged=True)
    if behind:
        session.say(f"{behind} groups of spans and facts cannot be searched yet")
    if session.as_json:
        return 0 if found else 1
    if not found:
        session.say("no run contains that")
        return 1
    runs = len({one["trace_id"] for one in found})
    more = f"; more with -n {limit * 5}" if len(found) == limit else ""
    session.say(f"{count(len(found), 'match', 'matches')} in {count(runs, 'run')}{more}")
    session.suggest(f"playhead show {place_of(found[0])}")
    return 0


def _rebuild(session: Session) -> int:
    from playhead_cli.store_changes import carry_out

    carry_out(session, Unindex())
    store = searchable(session)
    try:
        behind = store.lag().groups
    finally:
        store.close()
    if session.as_json:
        left: PrintedIndex = {"schema_version": 1, "behind": behind}
        session.print_json(left)
    elif behind:
        session.say(f"the receiver is rebuilding the index: {behind} groups of spans and facts left")
    else:
        session.say("the index was rebuilt")
    return 0
