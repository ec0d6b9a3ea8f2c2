"""The snapshots of the working folder on a tape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from playhead_checkpoint.workspace.tree import Tree, TreeItem, changed
from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Content, Fact
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.workspace import FolderEntry, decode_changes
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@dataclass(frozen=True, slots=True)
class TakenSnapshot:
    """One look at the working folder."""

    label: str
    """``start``, ``end``, ``step``, or the program's own word."""
    begun_ns: int
    ended_ns: int
    tree: Tree
    changed: int
    """How many paths differ from the snapshot before."""
    kept_bytes: int
    """Bytes of content that it added to the tape."""
    left_out: tuple[str, ...]
    seq: int

    @property
    def size_bytes(self) -> int:
        """Size of its files."""
        return sum(item.entry.size for item in self.tree.values())


def snapshots_of(tape: IndexedTape) -> list[TakenSnapshot]:
    """The snapshots on a tape, in order. `CorruptTape` where a fact is none that playhead writes."""
    found: list[TakenSnapshot] = []
    tree: Mapping[str, TreeItem] = {}
    kept = 0
    for fact in tape.named(e.PLAYHEAD_WORKSPACE, e.PLAYHEAD_WORKSPACE_FILE):
        if fact.name == e.PLAYHEAD_WORKSPACE_FILE:
            kept += 0 if fact.body is None else fact.body.size - fact.body.base_bytes
            continue
        try:
            changes = decode_changes(b"" if fact.body is None else tape.read(fact.body))
            tree = changed(tree, changes, partial(_content, tape))
            told = len(changes.entries) + len(changes.gone)
            found.append(_taken(fact, tree, told, kept))
        except (TypeError, ValueError, TapeError) as problem:
            raise CorruptTape(
                f"fact {fact.seq} is no snapshot of a working folder", cause=str(problem)
            ) from problem
        kept = 0
    return found


def _taken(fact: Fact, tree: Tree, told: int, kept_bytes: int) -> TakenSnapshot:
    at: Mapping[str, Any] = fact.attributes
    return TakenSnapshot(
        str(at.get(a.PLAYHEAD_WORKSPACE_LABEL, "")),
        int(at.get(a.PLAYHEAD_WORKSPACE_BEGUN_NS, fact.time_ns)),
        fact.time_ns,
        tree,
        told,
        kept_bytes,
        tuple(map(str, at.get(a.PLAYHEAD_WORKSPACE_LEFT_OUT) or ())),
        fact.seq,
    )


def _content(tape: IndexedTape, entry: FolderEntry) -> bytes:
    return tape.read(Content(entry.digest, entry.kept_bytes))
