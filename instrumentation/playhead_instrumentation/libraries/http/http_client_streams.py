"""Streams from which `http.client` reads an answer: of a real connection, or of a recording."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from typing import Any

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.http.exchange import HttpExchange
from playhead_instrumentation.libraries.http.framing import Framing, frames, head
from playhead_instrumentation.libraries.http.recorded_response import peer_of
from playhead_instrumentation.patching.lanes import Outside
from playhead_instrumentation.recorder.played_exchange import PlayedExchange


class Tee:
    """Records the bytes of the body and passes them on. The answer ends with its last byte.

    Replaces the buffered reader of a response, with the methods that `http.client` and urllib3 use.
    """

    def __init__(self, stream: Any, exchange: HttpExchange, framing: Framing) -> None:
        self._stream = stream
        self._exchange = exchange
        self._framing = framing
        if framing.over:
            exchange.finished(exchange.await_arrival())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, size: int | None = -1, /) -> bytes:
        """As the reader does."""
        data = self._guarded(self._stream.read, size)
        self._take(data, ended=size is None or size < 0 or len(data) < size)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        """As the reader does."""
        data = self._guarded(self._stream.read1, size)
        self._take(data, ended=not data and size != 0)
        return data

    def readline(self, size: int = -1, /) -> bytes:
        """As the reader does."""
        data = self._guarded(self._stream.readline, size)
        self._take(data, ended=not data and size != 0)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """As the reader does."""
        count = self._guarded(self._stream.readinto, buffer)
        self._take(bytes(memoryview(buffer).cast("B")[:count]), ended=not count and bool(len(buffer)))
        return count

    def peek(self, size: int = 0, /) -> bytes:
        """As the reader does. Peeked bytes are recorded when they are read."""
        return self._guarded(self._stream.peek, size)

    def close(self) -> None:
        """As the reader does. A body that was not read completely is abandoned."""
        try:
            self._stream.close()
        finally:
            self._exchange.abandoned()

    def _guarded(self, read: Any, argument: Any) -> Any:
        exchange = self._exchange
        if exchange.over:
            return read(argument)
        try:
            # Framing bytes are no delivery; the next read, or the gate, marks this thread as idle.
            with Outside():
                return read(argument)
        except BaseException as error:
            if not exchange.over:
                exchange.failed(
                    error, exchange.await_arrival() if isinstance(error, Exception) else None
                )
            raise

    def _take(self, data: bytes, *, ended: bool) -> None:
        exchange, framing = self._exchange, self._framing
        if exchange.over:
            return
        missing: ErrorRecord | None = None
        try:
            body = framing.body(data)
            if ended and not framing.over:
                missing = framing.cut()
        except ValueError:
            body, missing = b"", framing.cut()
        if body:
            exchange.received(body, exchange.await_arrival())
        if missing is not None:
            exchange.broken(missing, exchange.await_arrival())
        elif framing.over:
            exchange.finished(exchange.await_arrival())

    def __del__(self) -> None:
        try:
            self._exchange.abandoned()
        except Exception:  # while the interpreter goes down
            return


class RecordedBytes(io.RawIOBase):
    """The bytes of a recorded answer. One read never joins two recorded pieces."""

    def __init__(self, played: PlayedExchange) -> None:
        self._played = played
        self._left = memoryview(head(played))
        self._frames: Iterator[bytes] | None = None

    def readable(self) -> bool:
        """As a raw stream does."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """As a raw stream does."""
        if not self._left:
            if self._frames is None:
                self._frames = frames(self._played, OSError)
            self._left = memoryview(next(filter(None, self._frames), b""))
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


class PlayedSocket:
    """Replaces the socket of a connection: drops what is sent and answers from a recording."""

    def __init__(self, played: PlayedExchange | None = None) -> None:
        """``played``: the recording; None: nothing was requested yet."""
        self._played = played
        self.unsent = b""
        """What the program has sent before it is known who answers."""

    def makefile(self, *_: Any, **__: Any) -> Any:
        """Return the stream from which the answer is read."""
        raw = io.BytesIO() if self._played is None else RecordedBytes(self._played)
        return io.BufferedReader(raw)  # pyright: ignore[reportArgumentType]

    def sendall(self, data: Any = b"", *_: Any) -> None:
        """Nothing is sent; kept while it is unknown who answers."""
        if self._played is None:
            self.unsent += bytes(data)

    def getpeername(self) -> Any:
        """Return the recorded address. OSError if the tape has none."""
        peer = None if self._played is None else peer_of(self._played.exchange.head)
        if peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return peer

    def settimeout(self, *_: Any) -> None:
        """No-op: there is no real socket."""

    def setsockopt(self, *_: Any) -> None:
        """No-op: there is no real socket."""

    def shutdown(self, *_: Any) -> None:
        """No-op: there is no real socket."""

    def close(self) -> None:
        """No-op: there is no real socket."""
