"""Record WebSockets of `websockets.sync`, which a thread of the library reads.

Two places are patched: the function that opens a connection, and the socket from which that thread
reads. In a replay the socket delivers the bytes of the tape (`sync_connections`). The
keepalive of the library runs in the unrecorded lane.
"""

from __future__ import annotations

import functools
import selectors
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.websockets.exchange import begin, key_of
from playhead_instrumentation.libraries.websockets.protocol import record_of_opening
from playhead_instrumentation.libraries.websockets.recorded_connection import opening_error
from playhead_instrumentation.libraries.websockets.sync_connections import (
    LiveConnection,
    LiveSocket,
    RecordedConnection,
    RecordedSocket,
)
from playhead_instrumentation.patching.lanes import Outside, Shadow, resume
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

LONG_S: Final = 3600.0
"""Time for an opening that was in time: a wait with a limit, as in the recording."""


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

    def live() -> Any:
        opens = functools.partial(original, connecter, deadline)
        return _opened(LiveConnection(exchange), connecter, asked.key, opens)

    def again(played: PlayedExchange) -> Any:
        failed = opening_error(played)
        if failed is not None:
            exchange.failed(failed, exchange.call.arrive().wait(), "request")
            raise failed
        listener = RecordedConnection(exchange, played)
        opens = functools.partial(original, connecter, _Lenient(deadline, played))
        return _opened(listener, connecter, key_of(played) or asked.key, opens)

    try:
        return exchange.call.answer(live, again)
    except BaseException as error:
        exchange.failed(error)
        raise


class _Lenient:
    """The time that a replay has to open a connection: as the tape says, it was long enough or not."""

    def __init__(self, deadline: Any, played: PlayedExchange) -> None:
        end = played.exchange.end
        lapsed = end is not None and end.error is not None and end.error.qualname == "TimeoutError"
        self._deadline = deadline
        self._least_s = 0.0 if lapsed else LONG_S

    def timeout(self, *, raise_if_elapsed: bool = True) -> float | None:
        """Seconds that are left, 0 if none; None: no limit. It lapses in a wait, not before."""
        left_s = self._deadline.timeout(raise_if_elapsed=False)
        return None if left_s is None else max(self._least_s, left_s)


def _headers(connecter: Any, protocol: Any) -> list[tuple[str, str]]:
    headers: Any = protocol.connect().headers
    if connecter.additional_headers is not None:
        headers.update(connecter.additional_headers)
    if connecter.user_agent_header is not None:
        headers.setdefault("User-Agent", connecter.user_agent_header)
    return list(headers.raw_items())


def _opened(
    listener: LiveConnection | RecordedConnection, connecter: Any, key: str, opens: Callable[[], Any]
) -> Any:
    """Open the connection as the library does, except for I/O; its threads need permits as others do."""
    exchange, creates = listener.exchange, connecter.create_connection

    def create(sock: Any, protocol: Any, **options: Any) -> Any:
        protocol.key = key
        listener.tap(protocol)
        listener.protocol = protocol
        return listener.watched(creates(listener.socket(sock), protocol, **options))

    replaced = {"create_connection": create, **listener.openers(connecter)}
    before = {name: connecter.__dict__[name] for name in replaced if name in connecter.__dict__}
    connecter.__dict__.update(replaced)
    try:
        connection = opens()
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


class _Selector(selectors.DefaultSelector):
    """The selector of the library's thread: waits for the network or for the permit of an item."""

    def __init__(self) -> None:
        super().__init__()
        self._live: LiveConnection | None = None
        self._recorded: selectors.SelectorKey | None = None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """As a selector does."""
        if isinstance(fileobj, RecordedSocket):
            self._recorded = selectors.SelectorKey(fileobj, -1, events, data)
            return self._recorded
        if isinstance(fileobj, LiveSocket):
            self._live = fileobj.listener
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As a selector does."""
        if self._recorded is not None:
            sock: Any = self._recorded.fileobj
            sock.await_bytes()
            return [(self._recorded, self._recorded.events)]
        live = self._live
        if live is None:
            return super().select(timeout)
        live.waits = outside = Outside()
        with outside:
            found = super().select(timeout)
        if live.closed:
            found = [(key, events) for key, events in found if not isinstance(key.fileobj, LiveSocket)]
        if not any(isinstance(key.fileobj, LiveSocket) for key, _ in found):
            resume()
        return found


class _Selectors:
    """Stands in for the module `selectors` in the library."""

    DefaultSelector = _Selector

    def __getattr__(self, name: str) -> Any:
        return getattr(selectors, name)


def _keep_alive(original: Any, connection: Any) -> None:
    if isinstance(connection.socket, RecordedSocket):
        return
    if isinstance(connection.socket, LiveSocket):
        with Shadow():
            original(connection)
    else:
        original(connection)
