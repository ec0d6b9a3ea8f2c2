"""Sockets of `multiprocessing`: listeners of managers, and connections to them.

In a replay nothing listens and nothing connects: a dummy connection stands for the recorded one, and its
data is on the tape. The authentication by key takes place only in the recording.
"""

from __future__ import annotations

import ast
import functools
import os
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.multiprocessing.exchange import PipeBlocked, answered, stay
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required


def patch(module: ModuleType) -> None:
    """Patch the functions that make sockets, and the authentication."""
    listener: Any = required(module, "SocketListener")
    connection: Any = required(module, "Connection")
    client, accept = required(module, "SocketClient"), required(listener, "accept")
    init, close = required(listener, "__init__"), required(listener, "close")
    if hasattr(client, "__playhead__"):
        return

    @functools.wraps(init)
    def listen(self: Any, address: Any, family: Any, backlog: int = 1) -> None:
        session = recording()
        if session is None:
            return init(self, address, family, backlog)

        def live() -> bytes:
            init(self, address, family, backlog)
            return repr(self._address).encode()

        self._socket = None
        said = answered(session, "listen", live)
        if self._socket is None:
            self._address = ast.literal_eval((said or b"None").decode())
            self._family, self._last_accepted, self._unlink = family, None, None

    @functools.wraps(accept)
    def accepted(self: Any) -> Any:
        try:
            return _connected(connection, "accept", b"", lambda: accept(self))
        except (ExchangeExhausted, PipeBlocked):
            stay()  # a server loops as long as the process runs
            raise

    @functools.wraps(close)
    def closed(self: Any) -> None:
        if self._socket is not None:
            close(self)

    @functools.wraps(client)
    def connect(address: Any) -> Any:
        return _connected(connection, "connect", repr(address).encode(), lambda: client(address))

    connect.__dict__["__playhead__"] = True
    PATCHES.put_all(listener, {"__init__": listen, "accept": accepted, "close": closed})
    PATCHES.put(module, "SocketClient", connect)
    for name in ("deliver_challenge", "answer_challenge"):
        PATCHES.put(module, name, _settled(required(module, name)))


def _connected(owner: Any, key: str, body: bytes, live: Callable[[], Any]) -> Any:
    session = recording()
    if session is None:
        return live()
    found: list[Any] = []

    def connect() -> None:
        found.append(live())

    answered(session, key, connect, body)
    return found[0] if found else owner(_nowhere())


def _nowhere() -> int:
    """Return a descriptor that stands in for one to another process."""
    return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)


def _settled(original: Any) -> Any:
    @functools.wraps(original)
    def challenge(connection: Any, authkey: Any, *args: Any, **kwargs: Any) -> None:
        session = recording()
        if session is None:
            return original(connection, authkey, *args, **kwargs)
        answered(session, "challenge", lambda: original(connection, authkey, *args, **kwargs))

    return challenge


def patch_folders(module: ModuleType) -> None:
    """Patch the folder for socket files, which a replay does not need."""
    original = required(module, "get_temp_dir")

    @functools.wraps(original)
    def get_temp_dir() -> Any:
        known = tempfile.tempdir
        try:
            with Shadow():
                return original()
        finally:
            tempfile.tempdir = known

    PATCHES.put(module, "get_temp_dir", get_temp_dir)


def patch_managers(module: ModuleType) -> None:
    """Record the memory addresses by which a manager names its objects."""

    def name(thing: object) -> int:
        session = recording()
        return id(thing) if session is None else session.driver.reads.read("pipe/id", lambda: id(thing))

    PATCHES.put(module, "id", name)


def patch_handles(module: ModuleType) -> None:
    """Patch the sending and receiving of descriptors through a connection."""
    send, receive = required(module, "send_handle"), required(module, "recv_handle")
    if hasattr(send, "__playhead__"):
        return

    @functools.wraps(send)
    def send_handle(connection: Any, handle: int, pid: Any) -> None:
        session = recording()
        if session is None:
            return send(connection, handle, pid)
        answered(session, "send handle", lambda: send(connection, handle, pid), writes=True)

    @functools.wraps(receive)
    def receive_handle(connection: Any) -> int:
        session = recording()
        if session is None:
            return receive(connection)
        found: list[int] = []

        def live() -> None:
            found.append(receive(connection))

        answered(session, "receive handle", live)
        return found[0] if found else _nowhere()

    send_handle.__dict__["__playhead__"] = True
    PATCHES.put_all(module, {"send_handle": send_handle, "recv_handle": receive_handle})


def patch_sender(module: ModuleType) -> None:
    """Patch the pid that is sent with a request for a descriptor or by a worker that is done."""
    own = ModuleType("os")
    own.__dict__.update(required(module, "os").__dict__)

    def pid() -> int:
        session = recording()
        return os.getpid() if session is None else session.driver.reads.read("pipe/pid", os.getpid)

    own.__dict__["getpid"] = pid
    PATCHES.put(module, "os", own)
