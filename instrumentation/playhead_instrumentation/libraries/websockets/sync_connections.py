"""A connection of `websockets.sync`, recorded or fed from a recording, and its socket."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.websockets.protocol import Listener, LiveListener
from playhead_instrumentation.libraries.websockets.recorded_connection import (
    Item,
    RecordedListener,
    fail_again,
)
from playhead_instrumentation.patching.lanes import Outside
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange


class ThreadedConnection(Listener):
    """State of a connection that a thread of the library reads, live or replayed."""

    protocol: Any = None
    late = False
    """Whether the answer to the handshake did not arrive in time."""
    closed = False
    """Whether it was closed from this side."""
    permit: Permit | None = None
    """Permit of the next item."""
    _opening = True
    _gone: tuple[BaseException | None, Any] | None = None

    def openers(self, connecter: Any) -> dict[str, Any]:
        """Return what to put in place of attributes of ``connecter`` while it opens the connection."""
        return {}

    def socket(self, sock: Any) -> Any:
        """Return what the connection gets as its socket."""
        return sock

    def watched(self, connection: Any) -> Any:
        """Record when the handshake times out, which is on the tape by itself."""
        original = connection.handshake

        @functools.wraps(original)
        def handshake(*args: Any) -> None:
            del connection.handshake
            try:
                original(*args)
            except TimeoutError:
                self.late = True
                raise

        connection.handshake = handshake
        return connection

    def lost(self, error: BaseException | None) -> None:
        """Nothing arrives any more."""
        if self._opening:
            self._gone = self._gone or (error, self.at)
        else:
            self.ended(self.protocol, error, self.at)

    @property
    def gone(self) -> bool:
        """Whether the peer ended the connection before the handshake was over."""
        return self._gone is not None and self._gone[1] is not None

    def opened(self) -> None:
        """The handshake is over."""
        self._opening = False
        if self._gone is not None:
            self.ended(self.protocol, *self._gone)

    def close(self) -> None:
        """The program has closed the connection: release its thread, for which nothing comes now."""
        self.closed = True
        if self.permit is not None:
            self.permit.give_up()
        self.at = None
        self.lost(None)


class LiveConnection(ThreadedConnection, LiveListener):
    """Listens to a connection, in the thread that reads from it."""

    def __init__(self, exchange: MessageExchange) -> None:
        super().__init__(exchange)
        self.sock: Any = None
        self.waits: Outside | None = None
        """What the reading thread waits in, outside the scheduler."""

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the connection."""
        return _name(self.sock.getsockname), _name(self.sock.getpeername)

    def openers(self, connecter: Any) -> dict[str, Any]:
        """See `ThreadedConnection.openers`."""
        return {name: self._outside(getattr(connecter, name)) for name in ("open_socket", "enable_tls")}

    def socket(self, sock: Any) -> Any:
        """See `ThreadedConnection.socket`."""
        return LiveSocket(sock, self)

    def _outside(self, original: Callable[..., Any]) -> Any:
        """Wrap a function that opens the connection: it waits for the outside world."""

        @functools.wraps(original)
        def opened(*args: Any) -> Any:
            try:
                with Outside():
                    return original(*args)
            finally:
                self.exchange.call.arrive().wait()

        return opened

    def close(self) -> None:
        """The program has closed it."""
        super().close()
        if self.waits is not None:
            self.waits.call_back()


class LiveSocket:
    """A connection's socket. What arrives waits for its permit before the program gets it."""

    def __init__(self, sock: Any, listener: LiveConnection) -> None:
        self._sock = listener.sock = sock
        self.listener = listener

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def fileno(self) -> int:
        """As the socket does."""
        return self._sock.fileno()

    def recv(self, *args: Any) -> bytes:
        """As the socket does."""
        listener = self.listener
        problem: BaseException | None = None
        data = b""
        listener.waits = outside = Outside()
        with outside:
            try:
                data = self._sock.recv(*args)
            except BaseException as error:
                problem = error
        listener.permit = permit = listener.exchange.call.arrive()
        if listener.closed:
            permit.give_up()
        at = permit.wait()
        if listener.closed:
            return b""
        listener.came(at)
        if problem is not None:
            listener.lost(problem)
            raise problem
        if not data:
            listener.lost(None)
        elif not listener.answered:
            listener.raw += data
        listener.feeding = True
        return data

    def close(self) -> None:
        """As the socket does. Closing is the program's own effect."""
        self.listener.close()
        self._sock.close()


class RecordedConnection(ThreadedConnection, RecordedListener):
    """Feeds a connection from a recording, in the thread that reads from it."""

    def __init__(self, exchange: MessageExchange, played: PlayedExchange) -> None:
        super().__init__(exchange, played)
        self._items: deque[tuple[int, Item]] = deque(enumerate(self.items()))

    def openers(self, connecter: Any) -> dict[str, Any]:
        """See `ThreadedConnection.openers`."""
        nowhere = RecordedSocket(self)
        return {"open_socket": nowhere.opened, "enable_tls": nowhere.opened, "sock": None}

    def bring(self) -> bytes:
        """Return the next bytes; empty when the connection is gone. Raises what was raised."""
        exchange = self.exchange
        data, batch = b"", None
        while self._items and not self.closed:
            index, item = self._items[0]
            due = self.played.due(index)
            apart = due is None or due.batch != batch or not self.wire_of(item)
            if data and (apart or exchange.call.missing() > 0):
                return data
            batch = None if due is None else due.batch
            try:
                self.permit = permit = exchange.permit()
                at = permit.wait()
            except ExchangeExhausted as error:
                raise self.cut(error) from None
            if not exchange.due(permit):
                continue
            if at is None or self.closed or exchange.over:
                break
            self._items.popleft()
            self.report(item, at)
            data += self.wire_of(item)
            if item.opcode == "lost":
                error = self.error()
                if error is not None:
                    raise error
            elif not data:
                fail_again(self.protocol, item)
        return data


class RecordedSocket:
    """Replaces a connection's socket: drops what is sent and delivers what was recorded."""

    family = None

    def __init__(self, listener: RecordedConnection) -> None:
        self.listener = listener
        self._ready: bytes | None = None
        self._error: BaseException | None = None

    def opened(self, *_: Any) -> RecordedSocket:
        """Stands in for the functions that open or wrap a connection."""
        return self

    def await_bytes(self) -> None:
        """Wait for the next bytes."""
        try:
            self._ready = self.listener.bring()
        except BaseException as error:
            self._error = error

    def recv(self, *_: Any) -> bytes:
        """As a socket does."""
        if self._ready is None and self._error is None:
            self.await_bytes()
        error, self._error = self._error, None
        if error is not None:
            raise error
        data, self._ready = self._ready or b"", None
        return data

    def getsockname(self) -> Any:
        """Return the recorded local address."""
        return self.listener.addresses()[0]

    def getpeername(self) -> Any:
        """Return the recorded remote address."""
        return self.listener.addresses()[1]

    def fileno(self) -> int:
        """There is no file descriptor: -1."""
        return -1

    def sendall(self, *_: Any) -> None:
        """No-op: nothing goes out."""

    def settimeout(self, *_: Any) -> None:
        """No-op."""

    def setsockopt(self, *_: Any) -> None:
        """No-op."""

    def shutdown(self, *_: Any) -> None:
        """No-op: nothing is open."""

    def close(self) -> None:
        """Tell the listener; no socket is open."""
        self.listener.close()


def _name(asked: Any) -> Any:
    try:
        return asked()
    except OSError:
        return None
