"""Messages of `multiprocessing` connections, which pipes, queues, pools and managers use.

A received message is on the tape of its receiver. A sent message is compared with the recorded one; a
replay does not send it.
"""

from __future__ import annotations

import functools
import io
import json
import pickletools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from playhead_core.facts import digest_of
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.multiprocessing.exchange import answered
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.redaction import Redactor

WHOLE_BYTES: Final = 4096
"""Longest sent message that is asked with its bytes; a longer one, which is on another tape, is asked
with its size and digest."""

PLACED: Final = frozenset("FRAME MEMOIZE PUT BINPUT LONG_BINPUT".split())
"""Pickle opcodes that concern the layout of the bytes, not the content."""


class _Received(io.BytesIO):
    """A message. CPython 3.12.0 and 3.12.1 crash when a `BytesIO` is collected with a view of it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.seek(0, io.SEEK_END)  # `recv_bytes_into` takes the position for the size

    def getbuffer(self) -> memoryview:
        """Return a view of the bytes, not of the buffer."""
        return memoryview(self.getvalue())


def patch(module: ModuleType) -> None:
    """Patch `Connection` and ``wait``."""
    owner: Any = required(module, "Connection")
    wait = required(module, "wait")
    send, receive = required(owner, "_send_bytes"), required(owner, "_recv_bytes")
    if hasattr(wait, "__playhead__"):
        return

    @functools.wraps(send)
    def send_bytes(connection: Any, buffer: Any) -> None:
        session = recording()
        if session is None:
            return send(connection, buffer)
        asked = said(bytes(buffer), session.redactor)
        answered(session, "send", lambda: send(connection, buffer), asked, writes=True)

    @functools.wraps(receive)
    def receive_bytes(connection: Any, maxsize: int | None = None) -> Any:
        session = recording()
        if session is None:
            return receive(connection, maxsize)
        data = answered(session, "receive", lambda: _bytes(receive(connection, maxsize)))
        return None if data is None else _Received(data)

    @functools.wraps(wait)
    def wait_for(object_list: Any, timeout: float | None = None) -> list[Any]:
        session = recording()
        if session is None:
            return wait(object_list, timeout)
        several: list[Any] = list(object_list)
        if timeout is not None and timeout <= 0:
            return _of(several, session.driver.reads.read("pipe/ready", _ready(wait, several, timeout)))
        found = answered(session, "wait", lambda: json.dumps(_ready(wait, several, timeout)()).encode())
        return _of(several, json.loads(found or b"[]"))

    wait_for.__dict__["__playhead__"] = True
    PATCHES.put_all(owner, {"_send_bytes": send_bytes, "_recv_bytes": receive_bytes})
    PATCHES.put_all(module, {"wait": wait_for, "_playhead_wait": wait})


def patch_pool(module: ModuleType) -> None:
    """Patch the ``wait`` of a pool module that was imported before, and pools of threads, which have no
    processes."""
    from multiprocessing import connection

    if module.__dict__.get("wait") is connection.__dict__.get("_playhead_wait"):
        PATCHES.put(module, "wait", connection.wait)
    pool, threads = required(module, "Pool"), required(module, "ThreadPool")
    wait, begin = required(pool, "_wait_for_updates"), required(threads, "_repopulate_pool")

    @functools.wraps(wait)
    def wait_for_updates(sentinels: Any, change_notifier: Any, timeout: float | None = None) -> None:
        if "put" not in vars(change_notifier):
            return wait(sentinels, change_notifier, timeout)
        with Shadow():
            return wait(sentinels, change_notifier, timeout)

    @functools.wraps(begin)
    def begin_with_a_pipe_of_its_own(self: Any) -> None:
        # How often its handler thread wakes up is chance if the order of threads is not recorded.
        session = recording()
        if session is not None and session.driver.gate.level != "strict":
            self._change_notifier.put = _in_shadow(self._change_notifier.put)
        begin(self)

    PATCHES.put(pool, "_wait_for_updates", staticmethod(wait_for_updates))
    PATCHES.put(threads, "_repopulate_pool", begin_with_a_pipe_of_its_own)


def _in_shadow(put: Callable[[object], None]) -> Callable[[object], None]:
    def put_in_shadow(one: object) -> None:
        with Shadow():
            put(one)

    return put_in_shadow


def _bytes(found: Any) -> bytes | None:
    return None if found is None else found.getvalue()


def _ready(wait: Any, several: Sequence[Any], timeout: float | None) -> Callable[[], list[int]]:
    """Gives a function for the indexes of those in ``several`` that are ready."""

    def ready() -> list[int]:
        with Shadow():
            found = wait(several, timeout)
        return [next(place for place, other in enumerate(several) if other is one) for one in found]

    return ready


def _of(several: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [several[place] for place in places if place < len(several)]


def said(data: bytes, redactor: Redactor) -> bytes:
    """Return a message in a form for comparison, without credentials."""
    _, count = redactor.body(data)
    if count:
        data = _without_places(data, redactor)
    if len(data) <= WHOLE_BYTES:
        return data
    return f"{len(data)} bytes {digest_of(data).hex()}".encode()


def _without_places(data: bytes, redactor: Redactor) -> bytes:
    """Return a pickle in a form that does not depend on the length of its credentials."""
    try:
        found = [
            [code.name.removeprefix("SHORT_").rstrip("48"), redactor.text(str(argument))]
            for code, argument, _ in pickletools.genops(data)
            if code.name not in PLACED
        ]
        return json.dumps(found).encode()
    except Exception:
        return redactor.body(data)[0]
