"""Custody in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from playhead_cli.output.words import count
from playhead_core.integrity import LinkStatement, What
from playhead_core.integrity.tombstones import Tombstone
from playhead_replay.tape_files.integrity import Chained

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import (
        ChainState,
        PrintedChain,
        PrintedChainFinding,
        PrintedTombstone,
    )

_DONE = {
    What.BEFORE: "came before there were chains: nothing is known of {them}",
    What.REDACTED: "{were} redacted",
    What.EMPTIED: "{were} emptied, as the run that {they} belonged to was deleted",
    What.AGED: "went because {their} time was over",
}
HEAD_DIGITS = 16
MOST_NAMED = 10


def state_of(chained: Chained) -> ChainState:
    """``whole``, ``changed`` or ``not chained``."""
    if chained.differences:
        return "changed"
    return "whole" if chained.is_chained else "not chained"


def process_lines(chained: Chained) -> Iterator[str]:
    """Yield lines about a process: its state, its chain, and declared changes to its facts."""
    name, state = chained.instance.hex(), state_of(chained)
    if not chained.links:
        yield f"process {name}: not chained, so changes cannot be detected"
        return
    part = f", a part of process {chained.origin.hex()}" if chained.part else ""
    links = f"{count(chained.links, 'link')} to {chained.head.hex()[:HEAD_DIGITS]}"
    yield f"process {name}: {state}, {count(chained.facts, 'fact')}, {links}{part}"
    if chained.rewritten:
        facts = f"{count(chained.rewritten, 'fact')} {_were(chained.rewritten)}"
        yield f"  {facts} written anew for the file"
    for said in chained.said:
        yield f"  {said_line(said)}"


def said_line(said: LinkStatement) -> str:
    """Return the changes to facts as one line: what, when and by whom."""
    number = sum(last - first + 1 for first, last in said.ranges)
    one = number == 1
    words = _DONE[What(said.what)].format(
        them="it" if one else "them",
        they="it" if one else "they",
        their="its" if one else "their",
        were=_were(number),
    )
    by = f" by {said.by}" if said.by else ""
    return f"{when(said.time_ns)}: {count(number, 'fact')} {words}{by}"


def difference_lines(processes: Iterable[Chained]) -> Iterator[str]:
    """Each difference from the chain, by process and number."""
    for one in processes:
        for found in one.differences:
            place = "" if found.first < 0 else f" {found.numbers}"
            yield f"chain {one.instance.hex()}{place}: {found.problem}"


def process_object(chained: Chained) -> PrintedChain:
    """Return the custody of a process as an object for JSON."""
    return {
        "instance": chained.instance.hex(),
        "chain_of": chained.origin.hex() or None,
        "state": state_of(chained),
        "facts": chained.facts,
        "links": chained.links,
        "head": chained.head.hex() or None,
        "part": chained.part,
        "not_chained": chained.before if chained.links else chained.facts,
        "rewritten": chained.rewritten,
        "done": [
            {"what": one.what, "facts": one.ranges, "time_ns": one.time_ns, "by": one.by or None}
            for one in chained.said
        ],
    }


def findings_of(chained: Chained) -> list[PrintedChainFinding]:
    """Return the differences of a process as objects, for ``--json``."""
    return [
        {
            "what": "chain",
            "instance": chained.instance.hex(),
            "first": one.first if one.first >= 0 else None,
            "last": one.last if one.last >= 0 else None,
            "problem": one.problem,
        }
        for one in chained.differences
    ]


def tombstone_line(tombstone: Tombstone) -> str:
    """Which runs were deleted, when, and by whom."""
    names = [name for _, name in tombstone.runs[:MOST_NAMED]]
    more = len(tombstone.runs) - len(names)
    runs = ", ".join(names) + (f" and {more} more" if more else "")
    were = "was" if len(tombstone.runs) == 1 else "were"
    by = f" by {tombstone.by}" if tombstone.by else ""
    what = f"{count(tombstone.facts, 'fact')}, {count(tombstone.spans, 'span')}"
    heads = ", ".join(link.hex()[:HEAD_DIGITS] for _, _, link in tombstone.chains[:MOST_NAMED])
    ended = f"; chains ended with {heads}" if heads else ""
    return f"{when(tombstone.time_ns)}: {runs} {were} {tombstone.why}{by}: {what}{ended}"


def tombstone_object(tombstone: Tombstone) -> PrintedTombstone:
    """Return a tombstone as an object for JSON."""
    return {
        "why": tombstone.why,
        "time_ns": tombstone.time_ns,
        "by": tombstone.by or None,
        "runs": [{"trace_id": id.hex(), "name": name} for id, name in tombstone.runs],
        "facts": tombstone.facts,
        "spans": tombstone.spans,
        "chains": [
            {"instance": instance.hex(), "links": links, "head": link.hex()}
            for instance, links, link in tombstone.chains
        ],
    }


def when(time_ns: int) -> str:
    """Return a time in UTC; other words if no date can represent it."""
    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "at no time that there is"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
