"""Extends the chain of a process when its facts are stored: makes the links for new facts."""

from __future__ import annotations

from typing import Any

from playhead_core.errors import CorruptTape
from playhead_core.integrity import (
    DIGEST_BYTES,
    MOST_FACTS,
    Link,
    LinkStatement,
    What,
    first_link,
    next_link,
    statement_of,
)
from playhead_core.integrity.chain import joined
from playhead_core.integrity.number_ranges import merged, outside
from playhead_receiver.storage.writing.known_instances import Instance
from playhead_receiver.storage.writing.prepare import FactRun

Row = tuple[Any, ...]


def links_for(known: Instance, part: FactRun, now_ns: int) -> list[Row]:
    """Rows of ``link`` for new facts. Advances the chain state in ``known``."""
    rows: list[Row] = []
    for begin, end in outside(part.first, part.last, known.promised):
        for first in range(begin, end + 1, MOST_FACTS):
            last = min(end, first + MOST_FACTS - 1)
            at = (first - part.first) * DIGEST_BYTES
            digests = part.digests[at : at + (last - first + 1) * DIGEST_BYTES]
            before = known.tip or first_link(part.instance)
            said = LinkStatement(What.CAME, [(first, last)], now_ns)
            link = next_link(before, part.instance, said, digests)
            rows.append(row_of(known, link, brought=False))
    return rows


def brought_link(known: Instance, link: Link) -> Row | None:
    """The row of an imported link, which comes before its facts; None if the link is rejected.

    It is accepted if it continues the links that are stored and no fact of the process is stored yet.
    """
    before = known.tip or first_link(link.instance)
    if known.lasts or joined(before, link.digest, link.said) != link.link:
        return None
    try:
        said = statement_of(link)
    except CorruptTape:
        return None
    if said.what == What.CAME:
        known.promised = merged([*known.promised, *said.ranges])
    return row_of(known, link, brought=True)


def row_of(known: Instance, link: Link, *, brought: bool) -> Row:
    """A row of ``link``. Advances the chain state in ``known``. ``brought``: the link was imported."""
    row = known.row, known.links, brought, link.said, link.digest, link.link, link.digests
    known.links, known.tip = known.links + 1, link.link
    return row
