"""A session of the OpenAI Agents SDK on top of a checkpoint store."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from playhead_checkpoint.store.linking import LinkedCheckpoints
from playhead_checkpoint.store.protocol import CheckpointStore
from playhead_core.errors import CheckpointTaken, CheckpointUnknown, CorruptTape, StateRefused

_NAME_DIGITS: Final = 12
_T = TypeVar("_T")

Items: TypeAlias = list[dict[str, Any]]


class _History(NamedTuple):
    """The items of a session after its latest change; ``number`` 0: no change yet."""

    number: int
    id: bytes
    items: Items


class PlayheadSession:
    """The history of a conversation in a checkpoint store; a ``Session`` of the SDK.

    Each change of the items is a checkpoint on top of the previous one in the thread of the session,
    linked to the current span; only changes are stored. Sessions with the same id, also in several
    processes, see each other's changes: of two concurrent changes one is applied on top of the other.
    Earlier checkpoints keep items that are removed later. The store is not closed with the session.

    ``session_id``: at most 1,000 characters of ASCII. ``session_settings``: ``SessionSettings`` of the
    SDK; its ``limit`` is the default of `get_items`. All methods raise the errors of the store.
    """

    def __init__(self, session_id: str, store: CheckpointStore, *, session_settings: Any = None) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._store = store
        self._linked = LinkedCheckpoints(store, "openai-agents")
        self._thread = json.dumps({"session": session_id})
        self._lock = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items in order, as new dicts; with ``limit`` the last ones. Below 0: no limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = (await asyncio.to_thread(self._history)).items
        if limit is None or limit < 0:
            return items
        return items[max(len(items) - limit, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        """Append items, all or none. `StateRefused` if one is not a dict of JSON values."""
        added = [_plain(item) for item in items]
        if added:
            await _finished(lambda: self._change(lambda found: [*found, *added]))

    async def pop_item(self) -> Any:
        """Remove the last item and return it; None if there is none."""
        found = await _finished(lambda: self._change(lambda found: found[:-1]))
        return found[-1] if found else None

    async def clear_session(self) -> None:
        """Remove all items. `forget` also deletes their history."""
        await _finished(lambda: self._change(lambda _: []))

    async def forget(self) -> None:
        """Delete all checkpoints of the session from the store."""
        await _finished(self._forget)

    def _change(self, change: Callable[[Items], Items]) -> Items:
        """Store the changed items on top of the newest ones. Returns the items before the change."""
        token = uuid.uuid4().hex  # equal changes of two processes are different changes
        with self._lock:
            above = self._history()
            while (items := change(above.items)) != above.items:
                try:
                    self._put(above, {"items": items, "change": token})
                    break
                except CheckpointTaken:
                    newer = self._history()
                    if newer.id == above.id:
                        raise
                    above = newer
            return above.items

    def _put(self, above: _History, state: dict[str, Any]) -> None:
        self._linked.put(state, self._thread, _name(above.number + 1), _name(above.number))

    def _history(self) -> _History:
        while found := self._store.of_thread(self._thread, limit=1):
            name, id = found[0].lineage.name, found[0].id
            try:
                state = self._store.state(id)
            except CheckpointUnknown:  # deleted meanwhile
                continue
            if not (len(name) == _NAME_DIGITS and name.isascii() and name.isdecimal()):
                raise CorruptTape(f"checkpoint {id.hex()} is not one of a session: {name!r:.80}")
            return _History(int(name), id, _items(id, state))
        return _History(0, b"", [])

    def _forget(self) -> None:
        with self._lock:
            self._store.delete([one.id for one in self._store.of_thread(self._thread)])


def _name(number: int) -> str:
    """Return the name of the checkpoint of a change; empty if there is no change yet."""
    return f"{number:0{_NAME_DIGITS}}" if number else ""


def _items(id: bytes, state: Any) -> Items:
    found = cast(dict[str, Any], state).get("items") if isinstance(state, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast(list[Any], found)):
        raise CorruptTape(f"checkpoint {id.hex()} has no items of a session")
    return cast(Items, found)


def _plain(item: Any) -> dict[str, Any]:
    """Return a JSON copy of the item, independent of later changes by the program."""
    try:
        found = json.loads(json.dumps(item))
    except (TypeError, ValueError, RecursionError) as error:
        raise StateRefused(f"an item of a session is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise StateRefused(f"an item of a session is a dict, not of {type(item).__name__}")
    return cast(dict[str, Any], found)


async def _finished(change: Callable[[], _T]) -> _T:
    """Make a change off the event loop. A cancellation waits until the change is complete."""
    task = asyncio.create_task(asyncio.to_thread(change))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and (task.cancelled() or task.exception() is None):
        raise cancelled
    return task.result()
