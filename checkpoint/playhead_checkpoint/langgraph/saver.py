"""A checkpoint saver of LangGraph that keeps its checkpoints in a store of playhead."""

from __future__ import annotations

import asyncio
import heapq
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ERROR,
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.base import Checkpoint as GraphCheckpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from playhead_checkpoint.langgraph.graph_types import GraphTypes, Serialized, refusals_reported
from playhead_checkpoint.langgraph.thread_names import (
    ANY_THREAD,
    name_starts,
    thread_name,
    thread_parts,
)
from playhead_checkpoint.store.linking import LinkedCheckpoints, id_in_thread
from playhead_checkpoint.store.protocol import (
    RESTS_ON_PARENT,
    Checkpoint,
    CheckpointStore,
)
from playhead_core.errors import CheckpointUnknown, UsageError

_PAGE: Final = 64
"""How many checkpoints of a thread `PlayheadSaver.list` looks up at a time."""


class PlayheadSaver(BaseCheckpointSaver[Any]):
    """Keeps the checkpoints of graphs; the methods of both kinds, ``put`` and ``aput``, may be mixed.

    A checkpoint is linked to the span that is current when it is put. Of the state is stored what
    changed. Values of types that are not registered go through ``serde``; by default that is
    LangGraph's own, restricted to the types that it takes for safe. `StateRefused` names the path and
    type of a value that would not come back as what it is. The store is not closed with the saver.
    """

    def __init__(self, store: CheckpointStore, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._store = store
        self._linked = LinkedCheckpoints(store, "langgraph")
        self._types = GraphTypes(self.serde)

    def with_allowlist(self, extra_allowlist: Any) -> PlayheadSaver:
        """A saver over the same store, whose serializer brings back these types, too."""
        return PlayheadSaver(self._store, serde=super().with_allowlist(extra_allowlist).serde)

    # One checkpoint

    def put(
        self,
        config: RunnableConfig,
        checkpoint: GraphCheckpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; the config that names it. A later put of one wins over the one before."""
        parts, name = _parts(config), checkpoint["id"]
        thread, parent = thread_name(*parts), get_checkpoint_id(config)
        state = {
            "checkpoint": self._kept(checkpoint),
            "metadata": get_serializable_checkpoint_metadata(config, metadata),
            "parent": parent,
            **_long_parts(thread, parts),
        }
        labels = [RESTS_ON_PARENT] if _open_channels(state["metadata"]) else []
        with refusals_reported(f"a checkpoint of thread {parts[0]:.100}"):
            self._linked.put(state, thread, name, parent or "", *labels, types=self._types, replace=True)
        return _config(parts, name)

    def _note(self, id: bytes, notes: dict[str, Any], *, replace: bool = False) -> None:
        """Keep writes by key: ``[task_path, task_id, index, channel, value]``.

        The serializer decides what is kept of an error: LangGraph's keeps its ``repr``, and LangGraph
        makes an exception of that text again. Other values come back as they were, or are refused.
        """
        packed = {
            key: [*origin, channel, Serialized(value)]
            if self._types.encrypts or channel == ERROR
            else [*origin, channel, value]
            for key, (*origin, channel, value) in notes.items()
        }
        if packed:
            self._store.note(id, packed, self._types, replace=replace)

    def _kept(self, checkpoint: GraphCheckpoint) -> GraphCheckpoint:
        """A checkpoint with its channels as they are stored."""
        if not self._types.encrypts:
            return checkpoint
        values = checkpoint["channel_values"]
        whole = {channel: Serialized(value) for channel, value in values.items()}
        return {**checkpoint, "channel_values": whole}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote. Errors, interrupts and resumptions win over those before.

        A refusal is a warning, too: LangGraph may drop the error.
        """
        parts = _parts(config)
        channels = dict.fromkeys(channel for channel, _ in writes)
        with refusals_reported(f"what a task wrote to {', '.join(channels):.200}"):
            id = id_in_thread(thread_name(*parts), _checkpoint_id(config))
            replaced, kept = _notes(writes, task_id, task_path)
            # First: an error is kept even if the other writes are refused.
            self._note(id, replaced, replace=True)
            self._note(id, kept)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names; without an id, the last one of its thread."""
        thread, name = thread_name(*_parts(config)), get_checkpoint_id(config)
        if not name:
            found = self._store.of_thread(thread, limit=1)
            if not found:
                return None
            name = found[0].lineage.name
        return self._tuple(thread, name)

    def _tuple(self, thread: str, name: str) -> CheckpointTuple | None:
        """The checkpoint of a name; None: it is not there, or not any longer."""
        try:
            _, state, notes = self._store.contents(id_in_thread(thread, name), self._types)
        except CheckpointUnknown:
            return None
        writes = sorted(notes.values(), key=lambda note: writes_sort_key(*note[:3]))
        parent, parts = state["parent"], _parts_of(thread, state)
        return CheckpointTuple(
            _config(parts, name),
            state["checkpoint"],
            state["metadata"],
            _config(parts, parent) if parent else None,
            [(task_id, channel, value) for _, task_id, _, channel, value in writes],
        )

    # Many checkpoints

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first over all threads; ``filter``: values that their metadata has."""
        before_id = (get_checkpoint_id(before) if before else None) or ""
        left = sys.maxsize if limit is None else limit
        for thread, name in self._names(config, before_id, left):
            if left <= 0:
                return
            one = self._tuple(thread, name)
            if one is None:
                continue
            metadata = cast(dict[str, Any], one.metadata)
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                left -= 1
                yield one

    def _names(
        self, config: RunnableConfig | None, before: str, limit: int
    ) -> Iterator[tuple[str, str]]:
        """Threads and names of checkpoints, greatest name first: their ids grow with time."""
        threads = self._threads(config)
        wanted = get_checkpoint_id(config) if config else None
        if wanted:
            return iter([(thread, wanted) for thread in threads if not before or wanted < before])
        each = [self._names_in(thread, before, min(limit, _PAGE)) for thread in threads]
        return heapq.merge(*each, key=itemgetter(1), reverse=True)

    def _names_in(self, thread: str, before: str, count: int) -> Iterator[tuple[str, str]]:
        """The same for one thread; ``count``: how many to look up first."""
        while count > 0:
            page = self._store.of_thread(thread, before=before, limit=count)
            yield from ((thread, one.lineage.name) for one in page)
            before = page[-1].lineage.name if len(page) == count else ""
            count = _PAGE if before else 0

    def _threads(self, config: RunnableConfig | None) -> Sequence[str]:
        if config is None:
            return [thread for thread in self._store.threads(ANY_THREAD) if thread_parts(thread)]
        told = _told(config)
        if told.get("checkpoint_ns") is None:
            return self._namespaces(told["thread_id"])
        return [thread_name(*_parts(config))]

    def _namespaces(self, thread_id: str) -> Sequence[str]:
        starts = name_starts(str(thread_id))
        return [thread for start in starts for thread in self._store.threads(start)]

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        for thread in self._namespaces(thread_id):
            self._store.delete([found.id for found in self._store.of_thread(thread)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints, with their writes, that runs of LangGraph made."""
        wanted = set(run_ids)
        for thread in self._threads(None):
            found = self._store.of_thread(thread)
            self._store.delete([one.id for one in found if self._metadata(one).get("run_id") in wanted])

    def _metadata(self, found: Checkpoint) -> dict[str, Any]:
        return self._store.state(found.id, self._types)["metadata"]

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, with their writes. What is there already is replaced."""
        for thread in self._namespaces(source_thread_id):
            for found in reversed(self._store.of_thread(thread)):
                self._copy(found, str(target_thread_id))

    def _copy(self, found: Checkpoint, thread_id: str) -> None:
        """Put a checkpoint into another thread."""
        state = self._store.state(found.id, self._types)
        parts = thread_id, _parts_of(found.lineage.thread, state)[1]
        thread = thread_name(*parts)
        state["checkpoint"] = self._kept(state["checkpoint"])
        state.pop("thread", None)
        state |= _long_parts(thread, parts)
        parent, id = state["parent"], id_in_thread(thread, found.lineage.name)
        above = id_in_thread(thread, parent) if parent else b""
        lineage = msgspec.structs.replace(found.lineage, parent=above, id=id, thread=thread)
        self._store.put(state, lineage, self._types, replace=True)
        self._note(id, self._store.notes(found.id, self._types), replace=True)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads (``delete``), or all but the latest (``keep_latest``).

        Those before it stay up to where the delta channels of the latest one can be rebuilt.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is keep_latest or delete, not {strategy}")
        for thread in (thread for thread_id in thread_ids for thread in self._namespaces(thread_id)):
            found = self._store.of_thread(thread)
            kept = self._needed(found) if strategy == "keep_latest" else set[bytes]()
            self._store.delete([one.id for one in found if one.id not in kept])

    def _needed(self, found: Sequence[Checkpoint]) -> set[bytes]:
        """The first checkpoint, and those before it which its delta channels rest on."""
        by_id = {one.id: one for one in found}
        one: Checkpoint | None = found[0] if found else None
        kept: set[bytes] = set()
        open_channels: set[str] | None = None
        while one is not None and one.id not in kept:
            kept.add(one.id)
            state = self._store.state(one.id, self._types)
            values = state["checkpoint"]["channel_values"]
            if open_channels is None:
                open_channels = _open_channels(state["metadata"])
            else:
                open_channels -= values.keys()
            if not open_channels:
                break
            one = by_id.get(one.lineage.parent)
        return kept

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Versions are numbers; after one of another saver, a text, the next one is such a text."""
        if current is None:
            return 1
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.{'0' * 16}"
        return current + 1

    # The same for programs with an event loop

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: GraphCheckpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        rows = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(partial(next, rows, None))) is not None:
            yield one

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await asyncio.to_thread(partial(self.prune, thread_ids, strategy=strategy))


def _open_channels(metadata: Any) -> set[str]:
    """The delta channels of which a checkpoint holds the changes alone."""
    return set(metadata.get("counters_since_delta_snapshot") or ())


def _told(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def _parts(config: RunnableConfig) -> tuple[str, str]:
    """Thread id and namespace of a config."""
    told = _told(config)
    return str(told["thread_id"]), told.get("checkpoint_ns") or ""


def _long_parts(thread: str, parts: tuple[str, str]) -> dict[str, Any]:
    """What a state has to hold of thread id and namespace: the name of the thread may have digests."""
    return {} if thread_parts(thread) == [*parts] else {"thread": [*parts]}


def _parts_of(thread: str, state: dict[str, Any]) -> tuple[str, str]:
    """Thread id and namespace of a stored checkpoint."""
    thread_id, namespace = state.get("thread") or thread_parts(thread)
    return thread_id, namespace


def _config(parts: tuple[str, str], name: str) -> RunnableConfig:
    thread_id, namespace = parts
    told = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": name}
    return {"configurable": told}


def _checkpoint_id(config: RunnableConfig) -> str:
    found = get_checkpoint_id(config)
    if found is None:
        raise UsageError("writes belong to a checkpoint: the config has no checkpoint_id")
    return found


def _notes(
    writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a task wrote as notes by key: those that replace earlier ones, and the others."""
    replaced, kept = dict[str, Any](), dict[str, Any]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        notes = replaced if index < 0 else kept
        notes[json.dumps([task_id, index])] = [task_path, task_id, index, channel, value]
    return replaced, kept
