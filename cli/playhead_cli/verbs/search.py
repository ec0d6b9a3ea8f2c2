"""``playhead search``: who said that?"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from playhead_cli.options import verb
from playhead_cli.printing import print_lines
from playhead_cli.session import Session
from playhead_cli.targets.searchable_store import searchable
from playhead_semconv.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from playhead_receiver.store import Hit

SCHEMA_VERSION = 1


@verb("search", short_help="find what was said, in all runs")
@click.argument("words", nargs=-1)
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--rebuild", is_flag=True, help="Only make the index anew, out of what is stored.")
def command(session: Session, words: tuple[str, ...], limit: int, rebuild: bool) -> int:
    """Find where all WORDS are said together, newest first. A word* stands for any end of it.

    Words in quotes are a phrase, fields narrow the runs: playhead search '"order 81"' agent:refund. Exit
    status 1 when nothing is found.
    """
    from playhead_receiver.asking.asked_runs import ask_hits, highlights
    from playhead_receiver.asking.language import read_language
    from playhead_receiver.store import Query

    if rebuild:
        return _rebuild(session)
    text = " ".join(words)
    asked = read_language(text, Query(mode=None, limit=limit))
    if not asked.text:
        instead = f"playhead ls {shlex.quote(text)}" if text else "playhead search WORD"
        raise UsageError("there is no word to search for", hint=instead)
    store = searchable(session)
    try:
        found = [(run.name, hit) for run, hit in ask_hits(store, asked)]
        lag = store.lag()
        behind = lag.bundles + lag.fact_runs
    finally:
        store.close()
    if session.as_json:
        session.print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "hits": [
                    {
                        "run": name,
                        "trace_id": hit.trace_id,
                        "span_id": hit.span_id,
                        "time_ns": hit.time_ns,
                        "excerpt": hit.excerpt,
                        "highlights": highlights(hit.excerpt, asked.text),
                    }
                    for name, hit in found
                ],
                "behind": behind,
            }
        )
    else:
        print_lines(session, [_line(name, hit, asked.text) for name, hit in found])
    if behind:
        session.say(f"{behind} groups of spans and facts cannot be searched yet")
    if not found and not session.as_json:
        session.say("that was said in no run")
    if found:
        session.suggest(f"playhead show {found[0][0]}:{found[0][1].span_id[:8]}")
    return 0 if found else 1


def _line(run: str, hit: Hit, text: str) -> Text:
    """Where something is said; what was asked for stands out."""
    from rich.text import Text

    from playhead_cli.views.styles import NUMBER
    from playhead_receiver.asking.asked_runs import highlights

    line = Text(f"{run}:{hit.span_id[:8]}", style=NUMBER)
    excerpt = Text(hit.excerpt)
    for begin, end in highlights(hit.excerpt, text):
        excerpt.stylize("bold reverse", begin, end)
    return Text("").append(line).append("  ").append(excerpt)


def _rebuild(session: Session) -> int:
    from playhead_cli.changing.deleting import carry_out
    from playhead_receiver.maintenance.errands import Unindex

    carry_out(session, Unindex())
    store = searchable(session)
    try:
        lag = store.lag()
    finally:
        store.close()
    behind = lag.bundles + lag.fact_runs
    if session.as_json:
        session.print_json({"schema_version": SCHEMA_VERSION, "behind": behind})
    elif behind:
        session.say(f"the receiver makes the index anew: {behind} groups of spans and facts to go")
    else:
        session.say("the index is made anew")
    return 0
