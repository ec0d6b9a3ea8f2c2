"""What a deletion takes: checkpoints that no other rests on, and nodes that nothing uses any longer.

How often nodes are used is counted for it. A put counts nothing: what many wrote is counted at once.
``counted`` says up to which row of each table uses are counted: before anything is deleted, of all.
``use_count`` has a row for each node up to there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from playhead_checkpoint.store.protocol import RESTS_ON_PARENT
from playhead_checkpoint.store.rows import AT_ONCE, Session, answers, rows_after
from playhead_checkpoint.tree.stored_nodes import nodes_below, packed_roots, state_roots, verified_below
from playhead_core.errors import CorruptTape

MOST_UNCOUNTED: Final = 1024
"""Checkpoints after which they are counted, though nothing is deleted."""
ALL_COUNTED: Final = (
    "SELECT (SELECT coalesce(max(seq), 0) FROM checkpoint), (SELECT coalesce(max(id), 0) FROM note), "
    "(SELECT coalesce(max(id), 0) FROM node)"
)
"""What ``counted`` says when everything is."""


def remove(database: Session, statement: str, rows: Collection[int | bytes]) -> None:
    """Delete rows of checkpoints or notes, all of them counted. Later rows may get their numbers."""
    database.executemany(statement, [(row,) for row in rows])
    _mark(database)


def settle(database: Session, gone: Iterable[bytes] = (), came: Iterable[bytes] = ()) -> tuple[int, int]:
    """Count what was written since the last time, and delete the nodes that nothing uses any longer.

    ``gone``: nodes to which what was counted and then deleted referred; ``came``: those of what took
    the place of something in its row. How many nodes were deleted, and their bytes.
    """
    changes = Counter(came)
    changes.subtract(gone)
    perhaps = {digest for digest, by in changes.items() if by < 0}
    new = _Uncounted(database)
    changes.update(new.uses)
    database.executemany(
        "INSERT INTO use_count (node, count) VALUES (?, 0)", [(id,) for id in new.nodes.values()]
    )
    if new.whole:  # else something that is damaged may use them
        perhaps |= new.nodes.keys() - new.uses.keys()
    freed = _freed(database, changes, perhaps)
    _mark(database)
    return freed


class _Uncounted:
    """What was written since the last count.

    ``uses``: of nodes by their digests; ``nodes``: ids of new ones; ``whole``: nothing is damaged.
    """

    def __init__(self, database: Session) -> None:
        checkpoint, note, node = database.execute(
            "SELECT checkpoint, note, node FROM counted"
        ).fetchone()
        self.uses: Counter[bytes] = Counter()
        self.nodes: dict[bytes, int] = {}
        self.whole = True
        for _, digest, packed in rows_after(database, "digest, packed", "checkpoint", "seq", checkpoint):
            self._use(state_roots, digest, packed)
        for _, packed in rows_after(database, "packed", "note", "id", note):
            self._use(packed_roots, packed)
        for id, digest, size, data in rows_after(database, "digest, size, data", "node", "id", node):
            self.nodes[digest] = id
            self._use(verified_below, digest, size, data)

    def _use(self, digests: Callable[..., Iterable[bytes]], *of: object) -> None:
        try:
            self.uses.update(digests(*of))
        except CorruptTape:
            self.whole = False


def _mark(database: Session) -> None:
    """All that is there is counted."""
    database.execute(f"UPDATE counted SET (checkpoint, note, node) = ({ALL_COUNTED})")


def _freed(database: Session, changes: Counter[bytes], perhaps: Collection[bytes]) -> tuple[int, int]:
    """Change counts; delete those nodes of some that have no uses, and what only they used."""
    count = size = 0
    while changes or perhaps:
        ids = node_ids(database, changes.keys() | perhaps)
        changed = [(by, ids[digest]) for digest, by in changes.items() if by and digest in ids]
        database.executemany("UPDATE use_count SET count = count + ? WHERE node = ?", changed)
        question = "SELECT node FROM use_count WHERE count <= 0 AND node IN "
        some = [ids[digest] for digest in perhaps if digest in ids]
        unused = [node for (node,) in answers(database, question, some)]
        changes = Counter()
        for _, length, data in answers(database, "SELECT id, size, data FROM node WHERE id IN ", unused):
            count, size = count + 1, size + len(data)
            changes.subtract(nodes_below(data, length))
        perhaps = set(changes)
        rows = [(node,) for node in unused]
        database.executemany("DELETE FROM node WHERE id = ?", rows)
        database.executemany("DELETE FROM use_count WHERE node = ?", rows)
    if count:  # no process may rely on it any longer that a node is there
        database.execute("UPDATE deletions SET count = count + 1")
    return count, size


def node_ids(database: Session, digests: Collection[bytes]) -> dict[bytes, int]:
    """Ids of nodes by digest, of those that are there."""
    return dict(answers(database, "SELECT digest, id FROM node WHERE digest IN ", list(digests)))


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
