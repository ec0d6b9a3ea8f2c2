"""WebSockets through `websockets.sync`: the edge of a connection that a thread of the library reads.

Two places are patched: where a connection is opened, and what that thread reads from. That is a socket
that is listened to or, at a replay, one that delivers the bytes of the tape. The keepalive of the
library runs in the unrecorded lane.
"""

from __future__ import annotations

import functools
import selectors
import sys
from collections import deque
from types import ModuleType
from typing import Any

from playhead_instrumentation.boundaries.message_exchange import MessageExchange
from playhead_instrumentation.boundaries.recording import recording_requests
from playhead_instrumentation.boundaries.websocket.exchange import (
    CLOSED,
    addresses_of,
    begin,
    error_of,
    key_of,
)
from playhead_instrumentation.boundaries.websocket.protocol import (
    Item,
    Listener,
    cut,
    fail_again,
    items,
    proxy_error,
    record_of_opening,
    report,
    wire_of,
)
from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.driver.verdict import Played
from playhead_instrumentation.runtime.lanes import Outside, Shadow, resume
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.session.session import Session
from playhead_semconv.errors import ExchangeExhausted


def patch(module: ModuleType) -> None:
    """Patch what opens connections, the connections, and the selectors that they wait with."""
    connecter: Any = required(module, "reconnect")
    connection: Any = required(module, "ClientConnection")
    library: Any = sys.modules["websockets.sync.connection"]
    for name in ("open_socket", "enable_tls", "open_connection"):
        required(connecter, name)
    required(required(library, "selectors"), "DefaultSelector")
    if not PATCHES.covers(connecter, "open_connection"):
        PATCHES.around(connection, "start_keepalive", _keep_alive)
        PATCHES.around(connecter, "open_connection", _opening)
        PATCHES.put(library, "selectors", _Selectors())


def _opening(original: Any, connecter: Any, deadline: Any) -> Any:
    session = recording_requests()
    if session is None:
        return original(connecter, deadline)
    asked: Any = required(sys.modules["websockets.sync.client"], "ClientProtocol")(
        connecter.ws_uri, **connecter.protocol_kwargs
    )
    exchange = begin(session, connecter.uri, _headers(connecter, asked))
    if exchange is None:
        return original(connecter, deadline)
    try:
        return _connected(exchange, session, connecter, asked.key, lambda: original(connecter, deadline))
    except BaseException as error:
        exchange.failed(error)
        raise


def _headers(connecter: Any, protocol: Any) -> list[tuple[str, str]]:
    headers: Any = protocol.connect().headers
    if connecter.additional_headers is not None:
        headers.update(connecter.additional_headers)
    if connecter.user_agent_header is not None:
        headers.setdefault("User-Agent", connecter.user_agent_header)
    return list(headers.raw_items())


def _connected(
    exchange: MessageExchange, session: Session, connecter: Any, key: str, original: Any
) -> Any:
    if exchange.refusal is not None:
        raise exchange.refusal
    played = exchange.played
    failed = None if played is None else proxy_error(played) or error_of(played, "request")
    if failed is not None:
        at = exchange.call.arrive().wait()
        exchange.failed(failed, at, "request")
        raise failed
    if played is None:
        return _opened(Heard(exchange, session), connecter, key, original)
    return _opened(Fed(exchange, session, played), connecter, key_of(played) or key, original)


def _opened(listener: Heard | Fed, connecter: Any, key: str, original: Any) -> Any:
    """Open the connection as the library does, except for I/O; its threads take turns like any other."""
    exchange, creates = listener.exchange, connecter.create_connection

    def create(sock: Any, protocol: Any, **options: Any) -> Any:
        protocol.key = key
        listener.tap(protocol)
        listener.protocol = protocol
        heard = HeardSocket(sock, listener) if isinstance(listener, Heard) else sock
        return listener.watched(creates(heard, protocol, **options))

    replaced: dict[str, Any] = {"create_connection": create}
    if isinstance(listener, Heard):
        for name in ("open_socket", "enable_tls"):
            replaced[name] = listener.outside(getattr(connecter, name))
    else:
        nowhere = PlayedSocket(listener)
        replaced |= {"open_socket": nowhere.opened, "enable_tls": nowhere.opened, "sock": None}
    before = {name: connecter.__dict__[name] for name in replaced if name in connecter.__dict__}
    connecter.__dict__.update(replaced)
    try:
        connection = original()
    except Exception as error:
        if listener.late:
            exchange.failed(error)
        elif listener.answered or listener.gone:
            listener.opened()
        elif not exchange.over:
            exchange.broken(record_of_opening(exchange, error), exchange.call.arrive().wait())
        raise
    finally:
        for name in replaced:
            connecter.__dict__.pop(name, None)
        connecter.__dict__.update(before)
    listener.opened()
    return connection


class _Connection(Listener):
    """State of a connection, whether the world or a tape answers it."""

    def __init__(self, exchange: MessageExchange, session: Session) -> None:
        super().__init__(exchange, session)
        self.protocol: Any = None
        self.late = False
        """Whether the answer to the handshake did not arrive in time."""
        self.closed = False
        """Whether it was closed from this side."""
        self.turn: Turn | None = None
        """Turn of the next item."""
        self._opening = True
        self._gone: tuple[BaseException | None, Any] | None = None

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
        if self.turn is not None:
            self.turn.give_up()
        self.at = None
        self.lost(None)


class Heard(_Connection):
    """Listens to a connection, in the thread that reads from it."""

    def __init__(self, exchange: MessageExchange, session: Session) -> None:
        super().__init__(exchange, session)
        self.sock: Any = None
        self.waits: Outside | None = None
        """What the reading thread waits in, outside the scheduler."""

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the connection."""
        return _name(self.sock.getsockname), _name(self.sock.getpeername)

    def outside(self, original: Any) -> Any:
        """Wrap a function that opens the connection: it waits for the world outside."""

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


class HeardSocket:
    """A connection's socket. What arrives waits for its turn before the program gets it."""

    def __init__(self, sock: Any, listener: Heard) -> None:
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
        listener.turn = turn = listener.exchange.call.arrive()
        if listener.closed:
            turn.give_up()
        at = turn.wait()
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


class Fed(_Connection):
    """Feeds a connection from a recording, in the thread that reads from it."""

    def __init__(self, exchange: MessageExchange, session: Session, played: Played) -> None:
        super().__init__(exchange, session)
        self._played = played
        self._items: deque[tuple[int, Item]] = deque(enumerate(items(played)))

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the recorded connection."""
        return addresses_of(self._played)

    def bring(self) -> bytes:
        """Return the next bytes; empty when the connection is gone. Raises what was raised."""
        exchange, played = self.exchange, self._played
        data, batch = b"", None
        while self._items and not self.closed:
            index, item = self._items[0]
            due = played.due(index)
            apart = due is None or due.batch != batch or not wire_of(self, item)
            if data and (apart or exchange.call.missing() > 0):
                return data
            batch = None if due is None else due.batch
            try:
                self.turn = turn = exchange.turn()
                at = turn.wait()
            except ExchangeExhausted as error:
                raise cut(exchange, error) from None
            if not exchange.due(turn):
                continue
            if at is None or self.closed or exchange.over:
                break
            self._items.popleft()
            report(self, played, item, at)
            data += wire_of(self, item)
            if item.opcode == "lost":
                error = self._error()
                if error is not None:
                    raise error
            elif not data:
                fail_again(self.protocol, item)
        return data

    def _error(self) -> BaseException | None:
        end = self._played.exchange.end
        if end is None or end.error is None or (end.error.module, end.error.qualname) == CLOSED:
            return None
        return error_of(self._played)


class PlayedSocket:
    """Replaces a connection's socket: drops what is sent and delivers what was recorded."""

    family = None

    def __init__(self, listener: Fed) -> None:
        self.listener = listener
        self._ready: bytes | None = None
        self._error: BaseException | None = None

    def opened(self, *_: Any) -> PlayedSocket:
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
        """The recorded local address."""
        return self.listener.addresses()[0]

    def getpeername(self) -> Any:
        """The recorded remote address."""
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


class _Selector(selectors.DefaultSelector):
    """The selector of the library's thread: waits for the outside world, or for the next item's turn."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: Heard | None = None
        self._played: selectors.SelectorKey | None = None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """As a selector does."""
        if isinstance(fileobj, PlayedSocket):
            self._played = selectors.SelectorKey(fileobj, -1, events, data)
            return self._played
        if isinstance(fileobj, HeardSocket):
            self._heard = fileobj.listener
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As a selector does."""
        if self._played is not None:
            sock: Any = self._played.fileobj
            sock.await_bytes()
            return [(self._played, self._played.events)]
        heard = self._heard
        if heard is None:
            return super().select(timeout)
        heard.waits = outside = Outside()
        with outside:
            found = super().select(timeout)
        if heard.closed:
            found = [(key, events) for key, events in found if not isinstance(key.fileobj, HeardSocket)]
        if not any(isinstance(key.fileobj, HeardSocket) for key, _ in found):
            resume()
        return found


class _Selectors:
    """Stands in for the module `selectors` in the library."""

    DefaultSelector = _Selector

    def __getattr__(self, name: str) -> Any:
        return getattr(selectors, name)


def _name(asked: Any) -> Any:
    try:
        return asked()
    except OSError:
        return None


def _keep_alive(original: Any, connection: Any) -> None:
    if isinstance(connection.socket, PlayedSocket):
        return
    if isinstance(connection.socket, HeardSocket):
        with Shadow():
            original(connection)
    else:
        original(connection)
