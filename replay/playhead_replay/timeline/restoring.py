"""Restores the copied checkpoints of a run into a checkpoint store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.copies.copier import Copy, NotesCopy
from playhead_checkpoint.store.engine import CheckpointEngine, NodesGone, Notes, Put
from playhead_checkpoint.store.rows import read_row
from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import Node
from playhead_checkpoint.tree.stored_nodes import roots_of
from playhead_core.errors import CorruptTape, TapeError, UsageError
from playhead_core.facts import digest_of
from playhead_replay.run.run import Run
from playhead_replay.timeline.copies import CopiedNodes, RecordedCopy
from playhead_semconv import attributes as a

ID_BYTES: Final = 16


class Restored(NamedTuple):
    """Number of restored checkpoints, and a text for each that could not be restored."""

    checkpoints: int
    left_out: list[str]


def restored(run: Run, path: Path) -> Restored:
    """Restore all copied checkpoints of a run into a new file.

    `UsageError` if the file exists, or the tapes have no copies.
    """
    if path.exists():
        raise UsageError(f"{path} already exists", hint="name a new file")
    held = CopiedNodes(run)
    places = held.places()
    if not places:
        raise UsageError(
            f"the tapes of {run.name} hold no states of checkpoints",
            cause="they are copied during recording, up to checkpoint-copies-bytes",
            hint=f"playhead checkpoints {run.name}",
        )
    kept: set[bytes] = set()
    left_out: list[str] = []
    with SqliteCheckpoints(path) as store:
        for place in places:
            try:
                id, copy = _id(place), place.read()
                try:
                    _write(store, place, id, copy, _own_nodes(copy))
                except NodesGone:  # an earlier state was replaced, and its nodes are needed again
                    _write(store, place, id, copy, _all(copy, held))
                if isinstance(copy, Copy):
                    kept.add(id)
            except (TapeError, NodesGone) as problem:
                about = str(place.fact.attributes.get(a.PLAYHEAD_CHECKPOINT_ID, ""))[: 2 * ID_BYTES]
                why = problem.what if isinstance(problem, TapeError) else "parts of it are missing"
                left_out.append(f"{about}: {why}")
    return Restored(len(kept), left_out)


def _id(place: RecordedCopy) -> bytes:
    found = _digits(place, a.PLAYHEAD_CHECKPOINT_ID)
    if not found:
        raise CorruptTape("a fact about a checkpoint has no id of one")
    return found


def _digits(place: RecordedCopy, name: str) -> bytes:
    """Return the bytes of an id; empty if it is not one."""
    try:
        found = bytes.fromhex(str(place.fact.attributes.get(name, "")))
    except ValueError:
        return b""
    return found if len(found) == ID_BYTES else b""


def _own_nodes(copy: Copy | NotesCopy) -> dict[bytes, Node]:
    return {nodes.digest_of(one): nodes.parsed(one) for one in copy.nodes}


def _write(
    store: CheckpointEngine,
    place: RecordedCopy,
    id: bytes,
    copy: Copy | NotesCopy,
    fresh: dict[bytes, Node],
) -> None:
    if isinstance(copy, NotesCopy):
        store.write_notes(Notes(id, copy.packed, copy.replace, fresh, None))
        return
    at = place.fact.attributes
    row = read_row(
        (
            id,
            copy.run,
            copy.span,
            at.get(a.PLAYHEAD_CHECKPOINT_KIND),
            _digits(place, a.PLAYHEAD_CHECKPOINT_PARENT),
            copy.time_ns,
            json.dumps(copy.labels),
            at.get(a.PLAYHEAD_CHECKPOINT_THREAD),
            at.get(a.PLAYHEAD_CHECKPOINT_NAME),
            at.get(a.PLAYHEAD_CHECKPOINT_SIZE_BYTES),
            digest_of(copy.packed),
            copy.packed,
        )
    )
    store.write(Put(row, fresh, None, True))


def _all(copy: Copy | NotesCopy, held: CopiedNodes) -> dict[bytes, Node]:
    """Return all nodes of a copy, children before parents. `TapeError` if one is missing."""
    packed = [copy.packed] if isinstance(copy, Copy) else list(copy.packed.values())
    found: dict[bytes, Node] = {}

    def below(digests: Collection[bytes]) -> Iterator[bytes]:
        for digest, data in held.load(digests).items():
            if digest not in found:
                node = nodes.opened(digest, data)
                yield from below([ref.digest for ref in node.below])
                found[digest] = node
                yield digest

    for one in packed:
        list(below(roots_of(one)))
    return found
