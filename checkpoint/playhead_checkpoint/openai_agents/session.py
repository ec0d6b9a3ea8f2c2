"""A session of the OpenAI Agents SDK that keeps its items in a store of playhead."""

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
    """The items of a session and the change that made them so; ``number`` 0: nothing was changed yet."""

    number: int
    id: bytes
    items: Items


class PlayheadSession:
    """The history of a conversation in a checkpoint store, as the SDK's ``Session`` protocol wants it.

    Each change of the items is a checkpoint that rests on the one before it in the session's thread,
    linked to the span that is current; of the items is stored what changed. Several sessions of one id,
    also in several processes, see each other's changes: of two at the same time one comes first, and
    the other is made on top of it. What an earlier checkpoint holds stays when items are taken away.
    The store is not closed with the session.

    ``session_id``: at most 1,000 characters of ASCII. ``session_settings``: ``SessionSettings`` of the
    SDK; its ``limit`` counts where `get_items` is given none. All methods raise the errors of the store.
    """

    def __init__(self, session_id: str, store: CheckpointStore, *, session_settings: Any = None) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._store = store
        self._linked = LinkedCheckpoints(store, "openai-agents")
        self._thread = json.dumps({"session": session_id})
        self._lock = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items in order, as new dicts; with ``limit`` the last ones. A limit below 0 is none."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = (await asyncio.to_thread(self._history)).items
        if limit is None or limit < 0:
            return items
        return items[max(len(items) - limit, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, all or none. `StateRefused`: one is no dict of what JSON has."""
        added = [_plain(item) for item in items]
        if added:
            await _finished(lambda: self._change(lambda found: [*found, *added]))

    async def pop_item(self) -> Any:
        """Take away the last item, and return it. ``None``: there is none."""
        found = await _finished(lambda: self._change(lambda found: found[:-1]))
        return found[-1] if found else None

    async def clear_session(self) -> None:
        """Take away all items. `forget` deletes what they were, too."""
        await _finished(lambda: self._change(lambda _: []))

    async def forget(self) -> None:
        """Delete all checkpoints of the session from the store."""
        await _finished(self._forget)

    def _change(self, change: Callable[[Items], Items]) -> Items:
        """Put the changed items, on top of the newest ones; those before the change."""
        token = uuid.uuid4().hex  # two equal changes of two processes are two
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
    """Of the checkpoint of a change; empty: nothing was changed yet."""
    return f"{number:0{_NAME_DIGITS}}" if number else ""


def _items(id: bytes, state: Any) -> Items:
    found = cast(dict[str, Any], state).get("items") if isinstance(state, dict) else None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in cast(list[Any], found)):
        raise CorruptTape(f"checkpoint {id.hex()} has no items of a session")
    return cast(Items, found)


def _plain(item: Any) -> dict[str, Any]:
    """The item as JSON has it; what the program does with its own later changes nothing in it."""
    try:
        found = json.loads(json.dumps(item))
    except (TypeError, ValueError, RecursionError) as error:
        raise StateRefused(f"an item of a session is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise StateRefused(f"an item of a session is a dict, not of {type(item).__name__}")
    return cast(dict[str, Any], found)


async def _finished(change: Callable[[], _T]) -> _T:
    """Make a change off the event loop. A cancellation waits until it is made: it is not half known."""
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
