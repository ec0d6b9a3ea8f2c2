"""A store of LangGraph (memory of agents across threads) on top of a checkpoint store."""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, cast

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from playhead_checkpoint.langgraph.graph_types import GraphTypes
from playhead_checkpoint.store.linking import id_in_thread
from playhead_checkpoint.store.protocol import MEMORY, CheckpointStore, Lineage
from playhead_checkpoint.tree.nodes import damaged
from playhead_core.errors import CheckpointUnknown

_START: Final = '{"memory": '
_LABELS: Final = (MEMORY, "langgraph")
_COMPARED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class PlayheadStore(BaseStore):
    """Stores values by namespace and key, for graphs that are compiled with it.

    Each item is a checkpoint, its namespace a thread. There is no semantic search: a search only filters
    and ignores its ``query``. Items do not expire. A namespace has at most 1,000 characters, a key 256.
    """

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._types = GraphTypes(JsonPlusSerializer(allowed_msgpack_modules=None))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute all reads, then all puts; of several puts of a key the last one wins."""
        operations = list(ops)
        results = [None if isinstance(op, PutOp) else self._answer(op) for op in operations]
        last = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        for op in last.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, GetOp):
            return self._item(op.namespace, op.key)
        if isinstance(op, SearchOp):
            return self._search(op)
        return self._namespaces(op)

    def _put(self, op: PutOp) -> None:
        thread = _thread(op.namespace)
        id = id_in_thread(thread, op.key)
        if op.value is None:
            self._store.delete([id])
            return
        earlier = self._item(op.namespace, op.key)
        created = earlier.created_at if earlier else datetime.now(UTC)
        lineage = Lineage(kind="framework", labels=_LABELS, id=id, thread=thread, name=op.key)
        state = {"key": op.key, "value": op.value, "created": created}
        self._store.put(state, lineage, self._types, replace=True)

    def _item(self, namespace: tuple[str, ...], key: str) -> Item | None:
        try:
            found = self._store.contents(id_in_thread(_thread(namespace), key), self._types)
        except CheckpointUnknown:
            return None
        return Item(
            value=_checked(found.state)["value"],
            key=key,
            namespace=namespace,
            created_at=found.state["created"],
            updated_at=_time(found.checkpoint.lineage.time_ns),
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return items below a namespace, the newest first."""
        checkpoints = [
            (one.lineage.time_ns, namespace, one.id)
            for namespace in self._below(op.namespace_prefix)
            for one in self._store.of_thread(_thread(namespace))
        ]
        checkpoints.sort(reverse=True)
        items = self._items((namespace, id) for _, namespace, id in checkpoints)
        wanted = (one for one in items if _fits(one.value, op.filter or {}))
        return list(islice(wanted, op.offset, op.offset + op.limit))

    def _items(self, found: Iterable[tuple[tuple[str, ...], bytes]]) -> Iterator[SearchItem]:
        for namespace, id in found:
            try:
                one = self._store.contents(id, self._types)
            except CheckpointUnknown:  # deleted meanwhile
                continue
            yield SearchItem(
                namespace,
                _checked(one.state)["key"],
                one.state["value"],
                one.state["created"],
                _time(one.checkpoint.lineage.time_ns),
            )

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = [one for one in self._below(()) if all(_matches(one, each) for each in conditions)]
        shown = sorted({one[: op.max_depth] for one in found})
        return shown[op.offset : op.offset + op.limit]

    def _below(self, prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the namespaces that begin with ``prefix``."""
        start = _thread(prefix)[:-2] if prefix else _START
        found = [_namespace(thread) for thread in self._store.threads(start)]
        return [one for one in found if one[: len(prefix)] == prefix]


def _checked(state: Any) -> dict[str, Any]:
    """Return the state of an item. `CorruptTape` if no store of items can have put it."""
    found = cast(dict[str, Any], state) if isinstance(state, dict) else {}
    fits = isinstance(found.get("key"), str) and isinstance(found.get("created"), datetime)
    if not (fits and isinstance(found.get("value"), dict)):
        raise damaged("no item of a store")
    return found


def _thread(namespace: Sequence[str]) -> str:
    return f"{_START}{json.dumps(list(namespace))}}}"


def _namespace(thread: str) -> tuple[str, ...]:
    found = json.loads(thread)
    return tuple(map(str, found["memory"]))


def _time(time_ns: int) -> datetime:
    return datetime.fromtimestamp(time_ns / 1e9, UTC)


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether the prefix or suffix of a namespace matches a condition; ``*`` matches any name."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    some = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", name) for name, wanted in zip(some, path, strict=True))


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value matches a filter: by equality, or by the operators that it names."""
    if not isinstance(wanted, dict):
        return value == wanted
    conditions = cast(dict[str, Any], wanted)
    if any(name.startswith("$") for name in conditions):
        return all(_compares(value, name, other) for name, other in conditions.items())
    if not isinstance(value, dict):
        return False
    parts = cast(dict[str, Any], value)
    return all(key in parts and _fits(parts[key], other) for key, other in conditions.items())


def _compares(value: Any, name: str, other: Any) -> bool:
    if name not in _COMPARED:
        raise ValueError(f"there is no operator {name}")
    try:
        return bool(_COMPARED[name](value, other))
    except TypeError:
        return False
