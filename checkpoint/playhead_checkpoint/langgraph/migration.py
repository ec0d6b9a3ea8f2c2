"""Migrates the threads of another LangGraph saver: SQLite, PostgreSQL, or any other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from playhead_checkpoint.langgraph.saver import PlayheadSaver
from playhead_core.errors import StoreError


class Migrated(NamedTuple):
    """Numbers of migrated items."""

    threads: int
    checkpoints: int
    writes: int


def migrate(
    source: BaseCheckpointSaver[Any], saver: PlayheadSaver, *, threads: Collection[str] | None = None
) -> Migrated:
    """Copy threads with all checkpoints, their lineage and writes, oldest first.

    ``threads``: ids of the threads; by default all. Each checkpoint is read back and compared:
    `StoreError` names one that differs. Existing checkpoints are replaced, so an interrupted migration
    can be repeated. The source is only read.
    """
    wanted = None if threads is None else set(threads)
    configs = [one.config for one in source.list(None)]
    seen: set[str] = set()
    checkpoints = writes = 0
    for config in reversed(configs):
        thread_id = str(_configurable(config)["thread_id"])
        if wanted is not None and thread_id not in wanted:
            continue
        found = source.get_tuple(config)
        if found is None:  # deleted meanwhile
            continue
        _copy(found, saver)
        seen.add(thread_id)
        checkpoints, writes = checkpoints + 1, writes + len(found.pending_writes or ())
    return Migrated(len(seen), checkpoints, writes)


def _copy(found: CheckpointTuple, saver: PlayheadSaver) -> None:
    thread = {key: _configurable(found.config).get(key, "") for key in ("thread_id", "checkpoint_ns")}
    parent = _configurable(found.parent_config)["checkpoint_id"] if found.parent_config else None
    above = thread if parent is None else thread | {"checkpoint_id": parent}
    config = saver.put({"configurable": above}, found.checkpoint, found.metadata, {})
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in found.pending_writes or ():
        tasks.setdefault(task_id, []).append((channel, value))
    for number, (task_id, task) in enumerate(tasks.items()):
        saver.put_writes(config, task, task_id, f"{number:08}")  # the path defines the order of tasks
    restored = saver.get_tuple(config)
    if restored is None or not _is_same(found, restored, saver):
        name = _configurable(found.config)["checkpoint_id"]
        raise StoreError(
            f"checkpoint {name} of thread {thread['thread_id']} came back as something else"
        )


def _is_same(one: CheckpointTuple, other: CheckpointTuple, saver: PlayheadSaver) -> bool:
    """Whether two checkpoints are equal."""
    parents = [_configurable(each.parent_config).get("checkpoint_id") for each in (one, other)]
    return (
        parents[0] == parents[1]
        and _equal(one.checkpoint, other.checkpoint, saver)
        and _equal(one.metadata, other.metadata, saver)
        and _equal(_writes(one), _writes(other), saver)
    )


def _writes(found: CheckpointTuple) -> list[tuple[str, str, Any]]:
    return sorted(found.pending_writes or [], key=lambda write: write[:2])


def _equal(one: Any, other: Any, saver: PlayheadSaver) -> bool:
    """Whether two values are equal, or serialize equally, for types without equality."""
    return bool(one == other) or saver.serde.dumps_typed(one) == saver.serde.dumps_typed(other)


def _configurable(config: RunnableConfig | None) -> dict[str, Any]:
    return {} if config is None else config.get("configurable", {})
