"""``playhead search``: who said that?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import verb
from playhead_receiver.cli.session import Session
from playhead_semconv.errors import RunUnknown, StoreBusy

if TYPE_CHECKING:
    from playhead_receiver.store import Upkeep

SCHEMA_VERSION = 1


@verb("search", short_help="find what was said, in all runs")
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def command(session: Session, words: tuple[str, ...], limit: int) -> int:
    """Find where all WORDS are said together, newest first. A word* stands for any end of it.

    Words in quotes are a phrase: playhead search '"order 81"'. Exit status 1 when nothing is found.
    """
    store = _searchable(session)
    try:
        hits = store.search(" ".join(words), limit)
        lag = store.lag()
        behind = lag.bundles + lag.fact_runs
        found = [(_name(store, hit.trace_id), hit) for hit in hits]
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
                    }
                    for name, hit in found
                ],
                "behind": behind,
            }
        )
    for name, hit in found if not session.as_json else ():
        click.echo(f"{name}:{hit.span_id[:8]}  {hit.excerpt}")
    if behind:
        session.say(f"{behind} groups of spans and facts cannot be searched yet")
    if found:
        session.suggest(f"playhead show {found[0][0]}:{found[0][1].span_id[:8]}")
    return 0 if found else 1


def _searchable(session: Session) -> Upkeep:
    """The store, all of it searchable where no receiver writes to it."""
    from playhead_receiver.store import open_store

    try:
        store = open_store(session.data_dir)
    except StoreBusy:  # the receiver sees to it
        return open_store(session.data_dir, read_only=True)
    while store.index():
        session.progress(f"{store.lag().bundles} groups of spans to go")
    return store


def _name(store: Upkeep, trace_id: str) -> str:
    try:
        return store.resolve(trace_id).name
    except RunUnknown:
        return trace_id
