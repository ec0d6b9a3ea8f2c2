"""A WebSocket server that says what its script says, and keeps what it hears.

The first word of a path names the case, with ``-`` for spaces. Each of its connections has a script: a
list of steps.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from itertools import zip_longest
from typing import Any, NamedTuple

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve


class Hear(NamedTuple):
    """Wait for so many messages of the program."""

    messages: int = 1


class Close(NamedTuple):
    """Close the connection."""

    code: int
    reason: str = ""


class Refuse(NamedTuple):
    """Answer the handshake with this status, and ``body``. Only as the first step."""

    status: int
    body: str


class Cut(NamedTuple):
    """Send these bytes as they are, and end the connection without closing it."""

    raw: bytes = b""


class Ping(NamedTuple):
    """Send a ping."""

    data: bytes


class InFrames(NamedTuple):
    """Send a message in frames: two, and an empty one, with which `websockets` ends it."""

    value: dict[str, Any]


PATIENCE_S = 60
LATE = Refuse(0, "")
"""Do not answer the handshake."""
HOLD = Hear(1_000)
"""Wait until the program leaves."""

Step = Hear | Close | Refuse | Cut | Ping | InFrames | dict[str, Any] | list[Any] | str | bytes
Script = Sequence[Step]
Frame = tuple[str, bytes]
"""Opcode and bytes."""


class TalkServer:
    """Plays ``scripts``: those of the connections of a case, in order."""

    def __init__(self, scripts: dict[str, list[Script]], binary: bool) -> None:
        self._left = {case: iter(each) for case, each in scripts.items()}
        self._playing: dict[Any, tuple[str, Script]] = {}
        """Id of a connection → its case and script."""
        self._binary = binary
        self._closing = threading.Event()
        self._talking: list[threading.Thread] = []
        self.heard: dict[str, list[list[str | bytes]]] = defaultdict(list)
        """Case → what each of its connections heard."""
        self.port = 0

    @contextmanager
    def running(self, identity: str = "") -> Iterator[TalkServer]:
        """Run for the length of the block. ``identity``: file with key and certificate, for TLS."""
        tls = None
        if identity:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(identity)
        options: Any = {"process_request": self._admit, "max_size": None, "ssl": tls}
        with serve(self._talk, "127.0.0.1", 0, **options) as server:
            self.port = server.socket.getsockname()[1]
            thread = threading.Thread(target=server.serve_forever, name="playhead-talks")
            thread.start()
            try:
                yield self
            finally:
                self._closing.set()
                server.shutdown()
                thread.join()
                for one in self._talking:  # what the program said last may not be heard yet
                    one.join(PATIENCE_S)

    def frames(self, step: Step) -> list[Frame]:
        """Return the frames that a step sends."""
        if isinstance(step, Ping):
            return [("ping", step.data)]
        if isinstance(step, Close):
            return [("close", step.code.to_bytes(2, "big") + step.reason.encode())]
        if isinstance(step, InFrames):
            ((opcode, data),) = self.frames(step.value)
            return [(opcode, data[:9]), ("continuation", data[9:]), ("continuation", b"")]
        return [] if isinstance(step, tuple) else [frame(self._encoded(step))]

    def _encoded(self, value: Any) -> str | bytes:
        if isinstance(value, str | bytes):
            return value
        said = json.dumps(value)
        return said.encode() if self._binary else said

    def _admit(self, connection: ServerConnection, request: Any) -> Any:
        case = request.path.split("/")[1].replace("-", " ")
        script = next(self._left[case])
        first = script[0]
        if first is LATE:
            self._closing.wait()
        if isinstance(first, Refuse) and first.status:
            return connection.respond(HTTPStatus(first.status), first.body)
        self._playing[connection.id] = case, script
        return None

    def _talk(self, connection: ServerConnection) -> None:
        self._talking.append(threading.current_thread())
        case, script = self._playing[connection.id]
        heard: list[str | bytes] = []
        self.heard[case].append(heard)
        try:
            for step, following in zip_longest(script, script[1:]):
                if isinstance(following, Close) and not isinstance(step, tuple):
                    self._last(connection, step, following)
                    return
                self._do(connection, heard, step)
        except ConnectionClosed:
            return

    def _last(self, connection: ServerConnection, step: Any, close: Close) -> None:
        """Send a message and close at once: the program cannot close upon the message before."""
        opcode, data = frame(self._encoded(step))
        with connection.send_context():
            protocol = connection.protocol
            (protocol.send_text if opcode == "text" else protocol.send_binary)(data)
            protocol.send_close(close.code, close.reason)

    def _do(self, connection: ServerConnection, heard: list[str | bytes], step: Step) -> None:
        if isinstance(step, Hear):
            for _ in range(step.messages):
                heard.append(connection.recv())
        elif isinstance(step, Close):
            connection.close(step.code, step.reason)
        elif isinstance(step, Cut):
            with suppress(OSError):  # the program may have left upon the first of them
                connection.socket.sendall(step.raw)
                connection.socket.shutdown(socket.SHUT_RDWR)
        elif isinstance(step, Ping):
            connection.ping(step.data)
        elif isinstance(step, InFrames):
            said = self._encoded(step.value)
            connection.send([said[:9], said[9:]])
        else:
            connection.send(self._encoded(step))


def frame(message: str | bytes) -> Frame:
    """The frame of a whole message."""
    return ("text", message.encode()) if isinstance(message, str) else ("binary", message)
