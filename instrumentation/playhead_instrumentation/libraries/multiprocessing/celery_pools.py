"""Processes of billiard, the copy of `multiprocessing` on which the pools of Celery are built.

Its connections, locks and values are those of `multiprocessing`, so they are patched as these are. A
pool of Celery reads and writes its pipes piece by piece beside them, watches them with functions of its
own, and names them by their descriptors, which are other numbers in a replay.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, MutableSet
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.multiprocessing.exchange import answered
from playhead_instrumentation.libraries.multiprocessing.listeners import patch_sender
from playhead_instrumentation.libraries.multiprocessing.messages import said
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required

_descriptors: Final[dict[int, int]] = {}
"""Descriptors of pipes, by the numbers that workers call them by."""


def patch_connections(module: ModuleType) -> None:
    """Patch how `billiard.connection` writes a piece of a message."""
    PATCHES.around(required(module, "_ConnectionBase"), "send_offset", _write)


def patch_memory(module: ModuleType) -> None:
    """Patch the files of shared memory in `billiard.heap`: their names have the process id."""
    PATCHES.around(required(module, "Arena"), "__init__", _in_shadow)


def patch_workers(module: ModuleType) -> None:
    """Patch `billiard.pool`: what a worker calls itself and its pipe."""
    patch_sender(module)
    PATCHES.around(required(module, "Worker"), "contribute_to_object", _named)


def patch_pool(module: ModuleType) -> None:
    """Patch `celery.concurrency.asynpool`."""
    for owner, name in (("ResultHandler", "_recv_message"), ("AsynPool", "on_job_ready")):
        required(required(module, owner), name)
    PATCHES.around(module.ResultHandler, "_recv_message", functools.partial(_receiving, module.__read__))
    PATCHES.around(module.AsynPool, "on_job_ready", _ready)
    PATCHES.around(module, "_select", _select)
    PATCHES.put(module, "set", InOrder)


class InOrder(MutableSet[Any]):
    """A set of descriptors in the order in which they were added, whatever their numbers are."""

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._members = dict.fromkeys(members)

    def __contains__(self, member: object) -> bool:
        return member in self._members

    def __iter__(self) -> Iterator[Any]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def add(self, value: Any) -> None:
        """As a set does."""
        self._members[value] = None

    def discard(self, value: Any) -> None:
        """As a set does."""
        self._members.pop(value, None)

    def difference(self, other: Iterable[Any]) -> InOrder:
        """As a set does."""
        return InOrder(member for member in self._members if member not in other)

    def difference_update(self, other: Iterable[Any]) -> None:
        """As a set does."""
        self -= other if isinstance(other, MutableSet) else set(other)

    def intersection_update(self, other: Iterable[Any]) -> None:
        """As a set does."""
        self._members = {member: None for member in self._members if member in other}


def _in_shadow(make: Any, arena: Any, *args: Any, **kwargs: Any) -> None:
    with Shadow():
        make(arena, *args, **kwargs)


def _write(write: Any, connection: Any, data: Any, offset: int) -> int:
    session = recording()
    if session is None:
        return write(connection, data, offset)
    asked = said(bytes(data[offset:]), session.redactor)
    found = answered(
        session, "write", lambda: b"%d" % write(connection, data, offset), asked, writes=True
    )
    return int(found or b"0")


def _named(contribute: Any, worker: Any, target: Any) -> Any:
    """Give a worker the number by which it names its pipe; in a replay the recorded one."""
    found = contribute(worker, target)
    session = recording()
    if session is not None and target is worker:
        real = worker.inqW_fd
        worker.inqW_fd = session.driver.reads.read("pipe/descriptor", lambda: real)
        _descriptors[worker.inqW_fd] = real
    return found


def _ready(ready: Any, pool: Any, job: Any, place: Any, result: Any, descriptor: Any) -> Any:
    return ready(pool, job, place, result, _descriptors.get(descriptor, descriptor))


def _receiving(read: Callable[..., int], receive: Any, handler: Any, *args: Any) -> Any:
    return receive(handler, *args, __read__=functools.partial(_read, read))


def _read(read: Callable[..., int], descriptor: int, buffer: Any, size: int) -> int:
    """Put what can be read into ``buffer``, which is memory or a file in memory."""
    session = recording()
    if session is None:
        return read(descriptor, buffer, size)

    def live() -> bytes:
        if not isinstance(buffer, memoryview):
            read(descriptor, piece := io.BytesIO(), size)
            return piece.getvalue()
        return buffer[: read(descriptor, buffer, size)].tobytes()

    data = answered(session, "read", live) or b""
    if isinstance(buffer, memoryview):
        buffer[: len(data)] = data
    else:
        buffer.write(data)
    return len(data)


def _select(
    select: Any, readers: Any = None, writers: Any = None, err: Any = None, timeout: float = 0
) -> Any:
    session = recording()
    if session is None:
        return select(readers, writers, err, timeout)
    given = [one for some in (readers, writers, err) for one in some or ()]
    watched = [one if isinstance(one, int) else one.fileno() for one in given]

    def live() -> bytes:
        readable, writable, again = select(readers, writers, err, timeout)
        places = [[watched.index(one) for one in some] for some in (readable, writable)]
        return json.dumps([*places, again]).encode()

    readable, writable, again = json.loads(answered(session, "wait", live) or b"[[], [], 0]")
    return {watched[at] for at in readable}, {watched[at] for at in writable}, again
