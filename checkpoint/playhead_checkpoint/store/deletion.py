"""Deletes checkpoints that no other needs, and nodes that are no longer used.

It relies on counts of the uses of each node. A put counts nothing: the uses of many puts are counted
together, later. Table ``counted`` holds the last counted row of each table; before a deletion all rows
are counted. ``use_count`` has a row for each counted node.
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
"""Number of uncounted checkpoints after which uses are counted even without a deletion."""
ALL_COUNTED: Final = (
    "SELECT (SELECT coalesce(max(seq), 0) FROM checkpoint), (SELECT coalesce(max(id), 0) FROM note), "
    "(SELECT coalesce(max(id), 0) FROM node)"
)
"""The content of ``counted`` if everything is counted."""


def remove(database: Session, statement: str, rows: Collection[int | bytes]) -> None:
    """Delete counted rows of checkpoints or notes. Later rows may get their numbers."""
    database.executemany(statement, [(row,) for row in rows])
    _mark(database)


def settle(database: Session, gone: Iterable[bytes] = (), came: Iterable[bytes] = ()) -> tuple[int, int]:
    """Count the uses of everything new, and delete nodes that are no longer used.

    ``gone``: digests to which counted and then deleted rows referred; ``came``: digests to which their
    replacements refer. Returns the number of deleted nodes and their bytes.
    """
    changes = Counter(came)
    changes.subtract(gone)
    perhaps = {digest for digest, by in changes.items() if by < 0}
    new = _Uncounted(database)
    changes.update(new.uses)
    database.executemany(
        "INSERT INTO use_count (node, count) VALUES (?, 0)", [(id,) for id in new.nodes.values()]
    )
    if new.whole:  # otherwise a damaged row may use them
        perhaps |= new.nodes.keys() - new.uses.keys()
    freed = _freed(database, changes, perhaps)
    _mark(database)
    return freed


class _Uncounted:
    """Everything written since the last count.

    ``uses``: number of uses by digest; ``nodes``: ids of new nodes; ``whole``: nothing is damaged.
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
    """Mark all rows as counted."""
    database.execute(f"UPDATE counted SET (checkpoint, note, node) = ({ALL_COUNTED})")


def _freed(database: Session, changes: Counter[bytes], perhaps: Collection[bytes]) -> tuple[int, int]:
    """Change counts; delete those of ``perhaps`` without uses, and nodes that only they used."""
    count = size = 0
    while changes or perhaps:
        ids = node_ids(database, changes.keys() | perhaps)
        changed = [(by, ids[digest]) for digest, by in changes.items() if by and digest in ids]
        database.executemany("UPDATE use_count SET count = count + ? WHERE node = ?", changed)
        query = "SELECT node FROM use_count WHERE count <= 0 AND node IN "
        some = [ids[digest] for digest in perhaps if digest in ids]
        unused = [node for (node,) in answers(database, query, some)]
        changes = Counter()
        for _, length, data in answers(database, "SELECT id, size, data FROM node WHERE id IN ", unused):
            count, size = count + 1, size + len(data)
            changes.subtract(nodes_below(data, length))
        perhaps = set(changes)
        rows = [(node,) for node in unused]
        database.executemany("DELETE FROM node WHERE id = ?", rows)
        database.executemany("DELETE FROM use_count WHERE node = ?", rows)
    if count:  # other processes must forget which nodes are stored
        database.execute("UPDATE deletions SET count = count + 1")
    return count, size


def node_ids(database: Session, digests: Collection[bytes]) -> dict[bytes, int]:
    """Return the ids of existing nodes by digest."""
    return dict(answers(database, "SELECT digest, id FROM node WHERE digest IN ", list(digests)))


def not_needed_of(database: Session, runs: Sequence[bytes]) -> list[bytes]:
    """Return the checkpoints of runs, without those that checkpoints of other runs need."""
    return _not_needed(
        database, dict(answers(database, "SELECT id, thread FROM checkpoint WHERE run IN ", runs))
    )


def strays(
    database: Session, gone: Callable[[Collection[bytes]], Collection[bytes]], before_ns: int, most: int
) -> list[bytes]:
    """Return the oldest checkpoints to delete; see `SqlCheckpoints.delete_strays`."""
    query = (
        "SELECT seq, id, thread, run FROM checkpoint WHERE seq > ? AND time_ns < ? ORDER BY seq LIMIT ?"
    )
    seq = -1
    while rows := database.execute(query, (seq, before_ns, AT_ONCE)).fetchall():
        seq = rows[-1][0]
        astray = {b"", *gone({run for *_, run in rows if run})}
        going = {id: thread for _, id, thread, run in rows if run in astray}
        if found := _not_needed(database, dict([*going.items()][:most])):
            return found
    return []


def _not_needed(database: Session, going: dict[bytes, str]) -> list[bytes]:
    """Return those of ``going`` (threads by id) that no other checkpoint needs."""
    threads = sorted({*going.values()} - {""})
    query = "SELECT id, parent, labels FROM checkpoint WHERE thread IN "
    below = {
        id: parent
        for id, parent, labels in answers(database, query, threads)
        if RESTS_ON_PARENT in labels
    }
    for id in below.keys() - going.keys():
        while going.pop(below.get(id, b""), None) is not None:
            id = below[id]
    return list(going)
