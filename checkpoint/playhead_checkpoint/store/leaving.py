"""Which checkpoints may go: not those that others rest on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from playhead_checkpoint.store.protocol import RESTS_ON_PARENT
from playhead_checkpoint.store.session import AT_ONCE, Session, answers


def not_needed_of(database: Session, runs: Sequence[bytes]) -> list[bytes]:
    """The checkpoints of runs, without those that checkpoints of other runs rest on."""
    return _not_needed(
        database, dict(answers(database, "SELECT id, thread FROM checkpoint WHERE run IN ", runs))
    )


def strays(
    database: Session, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ns: int, most: int
) -> list[bytes]:
    """The oldest checkpoints that may go; see `SqlCheckpoints.delete_strays`."""
    question = (
        "SELECT seq, id, thread, run FROM checkpoint WHERE seq > ? AND time_ns < ? ORDER BY seq LIMIT ?"
    )
    seq = -1
    while rows := database.execute(question, (seq, before_ns, AT_ONCE)).fetchall():
        seq = rows[-1][0]
        astray = {b"", *gone({run for *_, run in rows if run})}
        going = {id: thread for _, id, thread, run in rows if run in astray}
        if found := _not_needed(database, dict([*going.items()][:most])):
            return found
    return []


def _not_needed(database: Session, going: dict[bytes, str]) -> list[bytes]:
    """Those checkpoints, by id with their threads, that no other one rests on."""
    threads = sorted({*going.values()} - {""})
    question = "SELECT id, parent, labels FROM checkpoint WHERE thread IN "
    below = {
        id: parent
        for id, parent, labels in answers(database, question, threads)
        if RESTS_ON_PARENT in labels
    }
    for id in below.keys() - going.keys():
        while going.pop(below.get(id, b""), None) is not None:
            id = below[id]
    return list(going)
