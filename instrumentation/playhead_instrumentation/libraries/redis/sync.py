"""Connections of redis-py that block.

The socket of a connection is replaced by one that listens, below the driver's own parsers and above
encryption. A replay has no socket below it: what the driver reads is on the tape.
"""

from __future__ import annotations

import errno
import functools
import socket
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.database.exchange import DatabaseExchange
from playhead_instrumentation.libraries.database.opening import begin_opening, raise_again, welcome_of
from playhead_instrumentation.libraries.redis.resp import Replies, commands
from playhead_instrumentation.libraries.redis.statement import joined
from playhead_instrumentation.libraries.redis.talk import (
    HEARD,
    Talk,
    heard_of,
    parameters_of,
    patch_connections,
    server_of,
)
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.recorder.exceptions import again as raised_again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_semconv import attributes as a

READ_BYTES: Final = 1 << 16
NOT_YET: Final = ("TimeoutError", "BlockingIOError", "SSLWantReadError")
"""Errors of a socket that has nothing to read."""


def patch(module: ModuleType) -> None:
    """Patch the connections of `redis.connection`."""
    patch_connections(
        module, _opening, _connecting, {"send_packed_command": _sending, "can_read": _readable}
    )


class Heard:
    """What listens to a connection, whatever socket it has."""

    def __init__(self) -> None:
        self.asks: Any = None
        """The command that is about to be sent, as the driver has packed it."""
        self.socket: RecordingSocket | None = None
        self.opens: RecordingSocket | None = None
        """The socket that is being opened."""


def _opening(original: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
    session = recording_requests()
    if session is None or connection._sock is not None:
        return original(connection, *args, **kwargs)
    server = server_of(connection)
    opening = begin_opening(session, server, parameters_of(connection))
    if opening is None:
        return original(connection, *args, **kwargs)
    heard = heard_of(connection, Heard)
    heard.opens = heard_socket = RecordingSocket(Talk(session, server), heard)

    def live() -> None:
        with Outside():
            original(connection, *args, **kwargs)

    def again(played: PlayedExchange) -> None:
        raise_again(played)
        heard_socket.recorded(welcome_of(played))
        with Shadow():
            original(connection, *args, **kwargs)

    try:
        try:
            opening.call.answer(live, again)
        except Exception as error:
            opening.failed(error, opening.permit().wait())
            raise
        at = opening.permit().wait()
    except BaseException as error:
        opening.failed(error)
        raise
    finally:
        heard.opens = None
    heard_socket.talk.welcome = opening.opened(at, heard_socket.opened())
    heard.socket = heard_socket


def _connecting(original: Any, connection: Any) -> Any:
    heard: Heard | None = connection.__dict__.get(HEARD)
    if heard is None or heard.opens is None or heard.opens.connects:
        return original(connection)
    return heard.opens.connected(functools.partial(original, connection))


def _sending(original: Any, connection: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
    if recording_requests() is None:
        return original(connection, command, *args, **kwargs)
    heard = heard_of(connection, Heard)
    outer, heard.asks = heard.asks, command
    try:
        return original(connection, command, *args, **kwargs)
    finally:
        heard.asks = outer


def _readable(original: Any, connection: Any, *args: Any, **kwargs: Any) -> bool:
    heard: Heard | None = connection.__dict__.get(HEARD)
    heard_socket = None if heard is None else heard.socket
    if heard_socket is None or connection._sock is not heard_socket or not heard_socket.decides:
        return original(connection, *args, **kwargs)
    parser: Any = connection._parser
    buffer: Any = getattr(parser, "_buffer", None)
    if buffer.unread_bytes() if hasattr(buffer, "unread_bytes") else parser._reader.has_data():
        return True
    return heard_socket.readable(*args, **kwargs)


class RecordingSocket:
    """The socket of a connection: puts on the tape what passes through it, live or replayed."""

    def __init__(self, talk: Talk, heard: Heard) -> None:
        self.talk = talk
        self.connects = False
        """Whether the driver is making the socket below."""
        self._heard = heard
        self._sock: Any = None
        """The socket below; None if nothing has been asked of the world."""
        self._makes: Callable[[], Any] | None = None
        self._welcome: bytearray | None = bytearray()
        """What the server has said while the connection is being opened; None: it is open."""
        self._setup: list[bytes] = []
        """What the driver has sent until then. It has credentials and goes on no tape."""
        self._ready = b""
        """Bytes that were read and that the driver does not have yet."""
        self._closed = False
        self._quiet: tuple[socket.socket, socket.socket] | None = None
        """Stands for the socket below, for who watches it."""
        self._timeout: float | None = None
        self._waits: Outside | None = None
        self._plays = False

    def recorded(self, welcome: bytes) -> None:
        """Note that the opening is on the tape: the server sent ``welcome``."""
        self._plays = True
        self._welcome = bytearray(welcome)
        self._ready = welcome

    def connected(self, makes: Callable[[], Any]) -> RecordingSocket:
        """Stands in for the function that makes the socket of a connection."""
        self._makes = makes
        if not self._plays:
            self._open()
        return self

    def opened(self) -> bytes:
        """Record that the connection is open. Return what the server sent."""
        welcome, self._welcome = bytes(self._welcome or b""), None
        return welcome

    @property
    def decides(self) -> bool:
        """Whether a question about what can be read is answered here."""
        return self.talk.goes_on or bool(self._ready) or self._sock is None

    def readable(self, timeout: float | None = 0) -> bool:
        """Return whether something can be read within ``timeout`` seconds; reads it ahead."""
        if self._ready:
            return True
        if not self.talk.goes_on:
            return False
        before = self.gettimeout()
        self.settimeout(timeout)
        try:
            self._ready = self.recv(READ_BYTES)
            return True
        except OSError as error:
            if type(error).__name__ not in NOT_YET:
                raise
            return False
        finally:
            self.settimeout(before)

    def sendall(self, data: Any) -> None:
        """As a socket does. The first bytes of a command are preceded by its ask."""
        if self._welcome is not None:
            self._setup.append(bytes(data))
        elif self._heard.asks is not None:
            asks, self._heard.asks = self._heard.asks, None
            self.talk.ask(joined(asks), self._open)
        if self._sock is not None and (self.talk.played is None or self._welcome is not None):
            with Shadow():
                self._sock.sendall(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As a socket does."""
        if not self._ready:
            self._ready = self._read(size, flags)
        data, self._ready = self._ready[:size], self._ready[size:]
        if self._welcome is not None and not self._plays:
            self._welcome += data
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        """As a socket does."""
        data = self.recv(size or len(buffer), flags)
        buffer[: len(data)] = data
        return len(data)

    def _read(self, size: int, flags: int) -> bytes:
        talk = self.talk
        while not self._closed:
            exchange = talk.exchange
            if exchange is None or exchange.over:
                if self._sock is None:
                    raise self._nothing_more()
                return self._sock.recv(size, flags)
            if talk.played is not None:
                data = self._again(exchange, talk.played)
            else:
                data = self._live(exchange, size, flags)
            if data is not None:
                return data
        return b""

    def _live(self, exchange: DatabaseExchange, size: int, flags: int) -> bytes:
        talk, data, problem = self.talk, b"", None
        self._waits = outside = Outside()
        try:
            with outside:
                try:
                    data = self._sock.recv(size, flags)
                except Exception as error:
                    problem = error
            # Another thread may have asked meanwhile.
            exchange = talk.exchange or exchange
            talk.permit = permit = exchange.permit()
            if self._closed:
                permit.give_up()
            at = permit.wait()
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            self._waits = talk.permit = None
        if problem is not None:
            if type(problem).__name__ in NOT_YET:
                talk.nothing(exchange, type(problem).__name__, at)
            else:
                exchange.failed(problem, at)
            raise problem
        if data:
            talk.came(exchange, data, at)
        else:
            talk.over(exchange, at)
        return data

    def _again(self, exchange: DatabaseExchange, played: PlayedExchange) -> bytes | None:
        """Return the next recorded bytes; None if something else is awaited now."""
        talk, number = self.talk, exchange.received_count
        talk.permit = permit = exchange.permit()
        try:
            at = permit.wait()
        except ExchangeExhausted as error:
            exchange.exhausted(error)
            raise
        except BaseException as error:
            exchange.failed(error)
            raise
        finally:
            if talk.permit is permit:
                talk.permit = None
        if talk.exchange is not exchange or self._closed:
            return None
        recorded = played.exchange
        if number < len(recorded.parts):
            failed = recorded.parts[number].attributes.get(a.ERROR_TYPE)
            if failed:
                talk.nothing(exchange, str(failed), at)
                raise _not_yet(str(failed))
            data = played.part(number)
            talk.came(exchange, data, at)
            return data
        if recorded.end is not None and recorded.end.error is not None:
            exchange.broken(recorded.end.error, at)
            raise raised_again(recorded.end.error, OSError)
        talk.over(exchange, at)
        return b""

    def _nothing_more(self) -> Exception:
        if self._timeout is None:
            return ExchangeExhausted("the program reads from a connection of which it has asked nothing")
        return _not_yet("TimeoutError" if self._timeout else "BlockingIOError")

    def _open(self) -> None:
        """Open the socket below, if it is not open, and say again what opened the connection."""
        if self._sock is not None or self._makes is None:
            return
        self.connects = True
        try:
            with Shadow():
                self._sock = sock = self._makes()
                if self._plays:
                    replies = Replies(sum(len(commands(one)) for one in [b"".join(self._setup)] if one))
                    sock.sendall(b"".join(self._setup))
                    while not replies.over and (data := sock.recv(READ_BYTES)):
                        replies.feed(data)
        finally:
            self.connects = False

    def settimeout(self, timeout: float | None) -> None:
        """As a socket does."""
        self._timeout = timeout
        if self._sock is not None:
            self._sock.settimeout(timeout)

    def gettimeout(self) -> float | None:
        """As a socket does."""
        return self._timeout if self._sock is None else self._sock.gettimeout()

    def getpeername(self) -> Any:
        """As a socket does."""
        if self._sock is not None:
            return self._sock.getpeername()
        server = self.talk.server
        return (server.address, server.port) if server.port else server.address

    def fileno(self) -> int:
        """As a socket does. If there is none, that of one on which nothing comes."""
        if self._sock is not None:
            return self._sock.fileno()
        if self._quiet is None and not self._closed:
            self._quiet = socket.socketpair()
        return -1 if self._quiet is None else self._quiet[0].fileno()

    def shutdown(self, how: int) -> None:
        """As a socket does."""
        self._close()
        if self._sock is not None:
            self._sock.shutdown(how)

    def close(self) -> None:
        """As a socket does."""
        self._close()
        if self._sock is not None:
            self._sock.close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for one in self._quiet or ():
            one.close()
        self._quiet = None
        self.talk.settled()
        if self.talk.permit is not None:
            self.talk.permit.give_up()
        if self._waits is not None:
            self._waits.call_back()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._sock is None:
            raise AttributeError(name)
        return getattr(self._sock, name)


def _not_yet(name: str) -> OSError:
    if name == "TimeoutError":
        return TimeoutError("timed out")
    return BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
