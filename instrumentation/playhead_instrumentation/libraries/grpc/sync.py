"""Record gRPC calls through blocking channels, below all Python code of the library.

The patch replaces the class of channels that the library wraps. A call through a channel consists of
batches of operations, and each batch completes with an event. A recording listens to the events
(`sync_live`). A replay makes them from the tape (`sync_recorded`); the library's own futures, iterators,
callbacks and errors run above them.

A thread of the channel takes the events of integrated calls. The library makes such a call while it
holds a lock that this thread needs, too. So the exchange begins, and waits if it is paused, before that.
"""

from __future__ import annotations

import functools
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, NamedTuple

from playhead_core.errors import PlayheadError
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.common.recording import recording_requests_of_program
from playhead_instrumentation.libraries.grpc.exchange import Channel, begin, release
from playhead_instrumentation.libraries.grpc.sync_live import (
    InitialMetadata,
    Listener,
    LiveCall,
    Message,
    with_context,
)
from playhead_instrumentation.libraries.grpc.sync_recorded import RecordedCall
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import current

METHOD, DEADLINE, METADATA, BATCHES, HANDLER = 1, 3, 4, 6, 7
"""Positions of these among the arguments of a call of the core; the last if the library manages it."""


def patch(module: ModuleType) -> None:
    """Make the library use our subclasses of channels and messages."""
    core: Any = required(module, "cygrpc")
    channel: Any = required(core, "Channel")
    if hasattr(channel, "__playhead__"):
        return
    for name in ("segregated_call", "integrated_call", "next_call_event", "check_connectivity_state"):
        required(channel, name)
    message: Any = required(core, "SendMessageOperation")
    manages: Any = required(module, "_channel_managed_call_management")
    metadata: Any = required(core, "SendInitialMetadataOperation")
    ours: Any = type("Channel", (_SyncChannel, channel), {"__playhead__": True})
    PATCHES.put_all(
        core,
        {
            "SendInitialMetadataOperation": type(metadata.__name__, (InitialMetadata, metadata), {}),
            "SendMessageOperation": type("SendMessageOperation", (Message, message), {}),
            "Channel": ours,
        },
    )
    PATCHES.put(module, "_channel_managed_call_management", functools.partial(_managing, manages))


def _managing(manages: Callable[[Any], Callable[..., Any]], state: Any) -> Callable[..., Any]:
    """Return what makes the integrated calls of a channel, whose ``state`` is the library's."""
    create, channel = manages(state), state.channel
    if not isinstance(channel, _SyncChannel):
        return create

    def created(*given: Any) -> Any:
        return PATCHES.call(channel.playhead_managed, create, *given)

    return created


class _Recorded(NamedTuple):
    """Stands for the handler of the events of a call that has begun."""

    exchange: MessageExchange
    handler: Callable[[Any], Any]

    def __call__(self, event: Any) -> Any:
        return self.handler(event)


class _SyncChannel(Channel):
    """Channel of the core whose calls are recorded or replayed.

    The core runs in the unrecorded lane, because threads that wait for a server hold its locks, too.
    """

    def __init__(self, target: bytes, *_: Any, **__: Any) -> None:
        super().__init__(target)
        self._playhead_events: queue.Queue[Any] | None = None
        """If a tape answers: events for the thread of the channel, played or real."""
        self._playhead_due: queue.Queue[None] | None = None
        """An entry for each event that the core will deliver."""
        session = current()
        if session is not None and session.driver.closed:
            # A wait that polls with timeouts never looks blocked, so wait without a timeout.
            common: Any = sys.modules["grpc._common"]
            PATCHES.put(common, "MAXIMUM_WAIT_TIMEOUT", None)
            self._playhead_events = queue.Queue()

    def segregated_call(self, *given: Any) -> Any:
        """Make a call whose events are taken by the calling thread."""
        original: Any = super()
        return PATCHES.call(self._segregated, original.segregated_call, *given)

    def _segregated(self, segregated_call: Any, *given: Any) -> Any:
        exchange = self._begun(given, [batch for batch, _ in given[BATCHES]])
        if exchange is None:
            return _make(segregated_call, given, given[BATCHES])
        given = _departed(exchange, given)

        def live() -> Any:
            batches = [(with_context(exchange, batch), tag) for batch, tag in given[BATCHES]]
            call = _make(segregated_call, given, tuple(batches))
            return LiveCall(call, Listener(exchange), segregated=True)

        def again(played: PlayedExchange | None) -> Any:
            return RecordedCall(played, exchange, given[BATCHES])

        return _answer(exchange, live, again)

    def playhead_managed(self, create: Callable[..., Any], *given: Any) -> Any:
        """Begin a call whose events are taken by a thread of the channel, and ``create`` it."""
        exchange = self._begun(given, given[BATCHES])
        if exchange is None:
            return create(*given)
        given, handler = _departed(exchange, given), given[HANDLER]
        rejection = exchange.call.rejection
        if rejection is None:
            return create(*given[:HANDLER], _Recorded(exchange, handler), *given[HANDLER + 1 :])
        # The thread of the channel waits for the world: it hears nothing of a call that does not go out.
        call = RecordedCall(rejection, exchange, [(batch, handler) for batch in given[BATCHES]])
        call.bring_to(handler)
        return call

    def integrated_call(self, *given: Any) -> Any:
        """Make a call whose events are taken by a thread of the channel."""
        original: Any = super()
        return PATCHES.call(self._integrated, original.integrated_call, *given)

    def _integrated(self, integrated_call: Any, *given: Any) -> Any:
        _, begun = given[BATCHES][0]
        if not isinstance(begun, _Recorded):
            return _make(integrated_call, given, given[BATCHES])
        exchange, handler = begun
        batches = tuple((batch, handler) for batch, _ in given[BATCHES])

        def live() -> Any:
            listener = Listener(exchange)
            heard = tuple(
                (with_context(exchange, batch), listener.callback(tag)) for batch, tag in batches
            )
            call = LiveCall(_make(integrated_call, given, heard), listener, segregated=False)
            if self._playhead_events is not None:
                self._bring(len(heard))
                call.on_batch = functools.partial(self._bring, 1)
            return call

        def again(played: PlayedExchange | None) -> Any:
            if self._playhead_events is None:
                self._playhead_events = queue.Queue()
            call = RecordedCall(played, exchange, batches)
            call.bring_to(self._playhead_events.put)
            return call

        return _answer(exchange, live, again)

    def next_call_event(self) -> Any:
        """Return the next event of any integrated call."""
        if self._playhead_events is not None:
            return self._playhead_events.get()
        original: Any = super()
        with Outside():
            return original.next_call_event()

    def _bring(self, count: int) -> None:
        """Put ``count`` real events into the queue that the thread of the channel reads."""
        events: Any = self._playhead_events
        original: Any = super()
        due = self._playhead_due or queue.Queue[None]()

        def bring() -> None:
            while True:
                due.get()
                events.put(original.next_call_event())

        if self._playhead_due is None:
            self._playhead_due = due
            with Shadow():
                threading.Thread(target=bring, daemon=True).start()
        for _ in range(count):
            due.put(None)

    def _begun(self, given: tuple[Any, ...], batches: Iterable[Any]) -> MessageExchange | None:
        """Begin the exchange of a call; None: nothing is recorded. ``batches``: of its operations."""
        session = recording_requests_of_program()
        if session is None:
            return None
        sends = [op.message for batch in batches for op in batch if isinstance(op, Message)]
        request = sends[0] if sends else None
        target, method = self.playhead_target, given[METHOD].decode()
        return begin(session, target, method, given[METADATA], request)


def _departed(exchange: MessageExchange, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Wait until a call may go out. Returns its arguments."""
    if exchange.call.pending_release is None:
        return given
    deadline = release(exchange, given[DEADLINE])
    return *given[:DEADLINE], deadline, *given[DEADLINE + 1 :]


def _make(call: Any, given: tuple[Any, ...], batches: Any) -> Any:
    """Make a call of the core with these arguments, but with ``batches``."""
    with Shadow():
        return call(*given[:BATCHES], batches, *given[BATCHES + 1 :])


def _answer(
    exchange: MessageExchange,
    live: Callable[[], Any],
    again: Callable[[PlayedExchange | None], Any],
) -> Any:
    """As `Call.answer`; ``again(None)`` makes a call that fails, if nothing answers."""
    try:
        exchange.call.check()
    except PlayheadError:
        return again(None)
    return exchange.call.answer(live, again)
