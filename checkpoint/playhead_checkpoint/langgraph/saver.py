"""A checkpoint saver of LangGraph on top of a checkpoint store of playhead."""

from __future__ import annotations

import asyncio
import heapq
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, Self, cast

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
from playhead_checkpoint.store.opening import open_checkpoints
from playhead_checkpoint.store.protocol import (
    RESTS_ON_PARENT,
    Checkpoint,
    CheckpointStore,
)
from playhead_checkpoint.tree.nodes import damaged
from playhead_core.errors import CheckpointUnknown, UsageError

_PAGE: Final = 64
"""How many checkpoints of a thread `PlayheadSaver.list` looks up at a time."""


class PlayheadSaver(BaseCheckpointSaver[Any]):
    """Stores the checkpoints of graphs; sync and async methods may be mixed.

    A checkpoint is linked to the current span. Only changed parts of a state are stored. Values of
    unregistered types go through ``serde``; by default LangGraph's own, restricted to the types that it
    considers safe. `StateRefused` names the path and type of a value that could not be restored.

    ``store``: the path of a file, the URL of a receiver (``http://HOST:4319``) or of a database
    (``postgresql://…``), or a store, which is not closed with the saver. A context manager for ``with``
    and ``async with``.
    """

    def __init__(
        self,
        store: CheckpointStore | str | os.PathLike[str],
        *,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._opened = isinstance(store, str | os.PathLike)
        given: Any = open_checkpoints(store) if isinstance(store, str | os.PathLike) else store
        if not isinstance(given, CheckpointStore):
            raise UsageError(
                f"a saver needs a checkpoint store, not {type(given).__name__}",
                hint="PlayheadSaver('checkpoints.sqlite')",
            )
        self._store = given
        self._linked = LinkedCheckpoints(given, "langgraph")
        self._types = GraphTypes(self.serde)

    def with_allowlist(self, extra_allowlist: Any) -> PlayheadSaver:
        """Return a saver for the same store whose serializer also restores these types."""
        return PlayheadSaver(self._store, serde=super().with_allowlist(extra_allowlist).serde)

    @classmethod
    def from_conn_string(cls, conn_string: str, **options: Any) -> Self:
        """Open a saver like those of LangGraph: ``with PlayheadSaver.from_conn_string(…) as saver``."""
        return cls(conn_string, **options)

    def setup(self) -> None:
        """Do nothing: opening a store makes what is missing. LangGraph's savers have this method."""

    def close(self) -> None:
        """Close the store if the saver opened it. Idempotent."""
        if self._opened:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    # One checkpoint

    def put(
        self,
        config: RunnableConfig,
        checkpoint: GraphCheckpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint and return its config. A repeated put replaces the earlier one."""
        parts, name = _parts(config), checkpoint["id"]
        thread, parent = thread_name(*parts), get_checkpoint_id(config)
        state = {
            "checkpoint": self._storable(checkpoint),
            "metadata": get_serializable_checkpoint_metadata(config, metadata),
            "parent": parent,
            **_long_parts(thread, parts),
        }
        labels = [RESTS_ON_PARENT] if _open_channels(state["metadata"]) else []
        with refusals_reported(f"a checkpoint of thread {parts[0]:.100}"):
            self._linked.put(state, thread, name, parent or "", *labels, types=self._types, replace=True)
        return _config(parts, name)

    def _note(self, id: bytes, notes: dict[str, Any], *, replace: bool = False) -> None:
        """Store writes by key: ``[task_path, task_id, index, channel, value]``.

        The serializer decides how an error is stored: LangGraph's stores its ``repr`` and makes an
        exception of it again. Other values are restored exactly, or refused.
        """
        packed = {
            key: [*origin, channel, Serialized(value)]
            if self._types.encrypts or channel == ERROR
            else [*origin, channel, value]
            for key, (*origin, channel, value) in notes.items()
        }
        if packed:
            self._store.note(id, packed, self._types, replace=replace)

    def _storable(self, checkpoint: GraphCheckpoint) -> GraphCheckpoint:
        """Return a checkpoint with its channels as they are stored."""
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
        """Store the writes of a task. Errors, interrupts and resumptions replace earlier ones.

        A refusal is also logged as a warning, because LangGraph may drop the error.
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
        """Return the checkpoint that a config names; without an id, the last one of its thread."""
        thread, name = thread_name(*_parts(config)), get_checkpoint_id(config)
        if not name:
            found = self._store.of_thread(thread, limit=1)
            if not found:
                return None
            name = found[0].lineage.name
        return self._tuple(thread, name)

    def _tuple(self, thread: str, name: str) -> CheckpointTuple | None:
        """Return the checkpoint with a name, or None."""
        try:
            _, state, notes = self._store.contents(id_in_thread(thread, name), self._types)
        except CheckpointUnknown:
            return None
        state = _checked(state)
        writes = sorted(map(_checked_note, notes.values()), key=lambda note: writes_sort_key(*note[:3]))
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
        """Yield checkpoints of all threads, newest first; ``filter``: required metadata."""
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
        """Return threads and names of checkpoints, greatest name first: names grow with time."""
        threads = self._threads(config)
        wanted = get_checkpoint_id(config) if config else None
        if wanted:
            return iter([(thread, wanted) for thread in threads if not before or wanted < before])
        each = [self._names_in(thread, before, min(limit, _PAGE)) for thread in threads]
        return heapq.merge(*each, key=itemgetter(1), reverse=True)

    def _names_in(self, thread: str, before: str, count: int) -> Iterator[tuple[str, str]]:
        """Yield the names of one thread; ``count``: how many to look up first."""
        while count > 0:
            page = self._store.of_thread(thread, before=before, limit=count)
            yield from ((thread, one.lineage.name) for one in page)
            before = page[-1].lineage.name if len(page) == count else ""
            count = _PAGE if before else 0

    def _threads(self, config: RunnableConfig | None) -> Sequence[str]:
        if config is None:
            return [thread for thread in self._store.threads(ANY_THREAD) if thread_parts(thread)]
        configurable = _configurable(config)
        if configurable.get("checkpoint_ns") is None:
            return self._namespaces(configurable["thread_id"])
        return [thread_name(*_parts(config))]

    def _namespaces(self, thread_id: str) -> Sequence[str]:
        starts = name_starts(str(thread_id))
        return [thread for start in starts for thread in self._store.threads(start)]

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        for thread in self._namespaces(thread_id):
            self._store.delete([found.id for found in self._store.of_thread(thread)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints and writes of runs of LangGraph."""
        wanted = set(run_ids)
        for thread in self._threads(None):
            found = self._store.of_thread(thread)
            self._store.delete([one.id for one in found if self._metadata(one).get("run_id") in wanted])

    def _metadata(self, found: Checkpoint) -> dict[str, Any]:
        return self._state(found)["metadata"]

    def _state(self, found: Checkpoint) -> dict[str, Any]:
        return _checked(self._store.state(found.id, self._types))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread with their writes. Existing ones are replaced."""
        for thread in self._namespaces(source_thread_id):
            for found in reversed(self._store.of_thread(thread)):
                self._copy(found, str(target_thread_id))

    def _copy(self, found: Checkpoint, thread_id: str) -> None:
        """Put a checkpoint into another thread."""
        state = self._state(found)
        parts = thread_id, _parts_of(found.lineage.thread, state)[1]
        thread = thread_name(*parts)
        state["checkpoint"] = self._storable(state["checkpoint"])
        state.pop("thread", None)
        state |= _long_parts(thread, parts)
        parent, id = state["parent"], id_in_thread(thread, found.lineage.name)
        above = id_in_thread(thread, parent) if parent else b""
        lineage = msgspec.structs.replace(found.lineage, parent=above, id=id, thread=thread)
        self._store.put(state, lineage, self._types, replace=True)
        notes = self._store.notes(found.id, self._types)
        self._note(id, {key: _checked_note(note) for key, note in notes.items()}, replace=True)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads (``delete``), or all but the latest (``keep_latest``).

        Earlier checkpoints stay as far as the delta channels of the latest one need them.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is keep_latest or delete, not {strategy}")
        for thread in (thread for thread_id in thread_ids for thread in self._namespaces(thread_id)):
            found = self._store.of_thread(thread)
            kept = self._needed(found) if strategy == "keep_latest" else set[bytes]()
            self._store.delete([one.id for one in found if one.id not in kept])

    def _needed(self, found: Sequence[Checkpoint]) -> set[bytes]:
        """Return the newest checkpoint and the earlier ones that its delta channels need."""
        by_id = {one.id: one for one in found}
        one: Checkpoint | None = found[0] if found else None
        kept: set[bytes] = set()
        open_channels: set[str] | None = None
        while one is not None and one.id not in kept:
            kept.add(one.id)
            state = self._state(one)
            values: dict[str, Any] = state["checkpoint"].get("channel_values", {})
            if open_channels is None:
                open_channels = _open_channels(state["metadata"])
            else:
                open_channels -= values.keys()
            if not open_channels:
                break
            one = by_id.get(one.lineage.parent)
        return kept

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version: a number, or text if another saver began with text."""
        if current is None:
            return 1
        if isinstance(current, str):
            return f"{int(current.partition('.')[0]) + 1:032}.{'0' * 16}"
        return current + 1

    # Async methods

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


def _checked(state: Any) -> dict[str, Any]:
    """Return the state of a checkpoint. `CorruptTape` if no saver can have put it."""
    found = cast(dict[str, Any], state) if isinstance(state, dict) else {}
    checkpoint = found.get("checkpoint")
    names = found.get("thread", ["", ""])
    if not (
        isinstance(checkpoint, dict)
        and isinstance(cast(dict[str, Any], checkpoint).get("channel_values", {}), dict)
        and isinstance(found.get("metadata"), dict)
        and isinstance(found.get("parent", 0), str | None)
        and isinstance(names, list)
        and [type(name) for name in cast("list[Any]", names)] == [str, str]
    ):
        raise damaged("no checkpoint of a graph")
    return found


def _checked_note(note: Any) -> list[Any]:
    """Return a write: ``[task_path, task_id, index, channel, value]``. `CorruptTape` if it is none."""
    found = cast("list[Any]", note) if isinstance(note, list) else []
    if [type(part) for part in found[:4]] != [str, str, int, str] or len(found) != 5:
        raise damaged("no write of a task")
    return found


def _open_channels(metadata: Any) -> set[str]:
    """Return the delta channels of which a checkpoint holds only changes."""
    found = metadata.get("counters_since_delta_snapshot")
    names = cast("list[Any]", found) if isinstance(found, dict | list | tuple | set) else ()
    return {name for name in names if isinstance(name, str)}


def _configurable(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def _parts(config: RunnableConfig) -> tuple[str, str]:
    """Return thread id and namespace of a config."""
    configurable = _configurable(config)
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns") or ""


def _long_parts(thread: str, parts: tuple[str, str]) -> dict[str, Any]:
    """Return thread id and namespace for the state, if the name of the thread has only digests."""
    return {} if thread_parts(thread) == [*parts] else {"thread": [*parts]}


def _parts_of(thread: str, state: dict[str, Any]) -> tuple[str, str]:
    """Return thread id and namespace of a stored checkpoint."""
    thread_id, namespace = state.get("thread") or thread_parts(thread)
    return thread_id, namespace


def _config(parts: tuple[str, str], name: str) -> RunnableConfig:
    thread_id, namespace = parts
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": name}
    return {"configurable": configurable}


def _checkpoint_id(config: RunnableConfig) -> str:
    found = get_checkpoint_id(config)
    if found is None:
        raise UsageError("writes belong to a checkpoint: the config has no checkpoint_id")
    return found


def _notes(
    writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the writes of a task as notes by key: those that replace earlier ones, and the others."""
    replaced, kept = dict[str, Any](), dict[str, Any]()
    for position, (channel, value) in enumerate(writes):
        index = WRITES_IDX_MAP.get(channel, position)
        notes = replaced if index < 0 else kept
        notes[json.dumps([task_id, index])] = [task_path, task_id, index, channel, value]
    return replaced, kept
