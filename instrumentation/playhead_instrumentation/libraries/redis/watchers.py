"""Record the waits of Celery's workers and clients, which watch their sockets themselves.

Each look is an exchange without a span. The answer to a worker says which of its sockets can be read,
counted in the order in which they were given to the watcher, and which signals came meanwhile: a worker
is ended by one. Signals that came elsewhere are a read of the moment at which the worker asks whether it
was to end. The answer to a client, which waits for a result, says whether its socket can be read.
"""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.patching.lanes import Outside
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session

log = Log(__name__)

_Found = TypeVar("_Found")

WATCHERS: Final = ("_epoll", "_poll", "_select")
"""Classes of kombu, of which it takes one."""

READ: Final = 0x001
"""The event of kombu that something can be read."""

WATCHED: Final = "_playhead_watched"
"""Attribute of a watcher: its `Watched`."""

_came: Final[list[int]] = []
"""Signals that came, that the program handles, and that are not on the tape yet, in order."""


def patch_watchers(module: ModuleType) -> None:
    """Patch `kombu.utils.eventio`."""
    for name in WATCHERS:
        layers = {"register": _register, "unregister": _unregister, "poll": _look}
        PATCHES.around_all(required(module, name), layers)


def patch_signals(module: ModuleType) -> None:
    """Patch `celery.platforms`, by which a worker says how it handles signals."""
    PATCHES.around(required(module, "Signals"), "__setitem__", _handling)


def patch_state(module: ModuleType) -> None:
    """Patch `celery.worker.state`, which a worker asks whether it is to end."""
    PATCHES.around(module, "maybe_shutdown", _ending)


def patch_clients(module: ModuleType) -> None:
    """Patch `celery.backends.redis`."""
    PATCHES.around(module, "_socket_readable", _readable)


class Watched:
    """The sockets that a watcher watches, and their numbers.

    Those that are read count from 0 upwards, pipes that are only written from -1 downwards: who has
    something to write and who has something to read register them in one tick, in an order of chance.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._readers = itertools.count()
        self._writers = itertools.count(-1, -1)

    def add(self, descriptor: int, events: int) -> None:
        """A socket is watched from now on."""
        if descriptor not in self._numbers:
            numbers = self._readers if events & READ else self._writers
            self._numbers[descriptor] = next(numbers)

    def drop(self, descriptor: int) -> None:
        """A socket is not watched any longer."""
        self._numbers.pop(descriptor, None)

    def said(self, ready: Any, signals: list[int]) -> bytes:
        """Return the result of a look, for the tape."""
        numbers = self._numbers
        found = [[numbers[one], events] for one, events in ready or () if one in numbers]
        return json.dumps({"ready": found, "signals": signals}).encode()

    def found(self, said: Any) -> list[tuple[int, int]]:
        """Return the result of a look, from the tape."""
        descriptors = {number: descriptor for descriptor, number in self._numbers.items()}
        return [(descriptors[one], events) for one, events in said["ready"] if one in descriptors]


def _watched(watcher: Any) -> Watched:
    found = watcher.__dict__.get(WATCHED)
    if found is None:
        found = watcher.__dict__[WATCHED] = Watched()
    return found


def _descriptor(watched: Any) -> int:
    return watched if isinstance(watched, int) else watched.fileno()


def _register(original: Any, watcher: Any, watched: Any, events: int) -> Any:
    _watched(watcher).add(_descriptor(watched), events)
    return original(watcher, watched, events)


def _unregister(original: Any, watcher: Any, watched: Any) -> Any:
    try:
        _watched(watcher).drop(_descriptor(watched))
    except OSError:
        log.debug("a socket was closed before it was dropped")
    return original(watcher, watched)


def _look(original: Any, watcher: Any, *args: Any, **kwargs: Any) -> Any:
    session = recording()
    if session is None:
        return original(watcher, *args, **kwargs)
    watched = _watched(watcher)
    before = len(_came)

    def live() -> tuple[Any, list[int]]:
        return original(watcher, *args, **kwargs), []

    def again(said: Any) -> tuple[Any, list[int]]:
        return watched.found(said), said["signals"]

    def says(found: tuple[Any, list[int]]) -> bytes:
        ready, signals = found
        came = _came[before:]
        del _came[before:]
        return watched.said(ready, [*signals, *came])

    ready, _ = _looked(session, live, again, (None, []), says, lambda found: _raise_signals(found[1]))
    return ready


def _ending(original: Any) -> None:
    session, here = recording(), list[int]()

    def live() -> list[int]:
        here.extend(_came)
        _came.clear()
        return here

    came = here if session is None else session.driver.reads.read("watch/signals", live)
    if came is not here:
        _raise_signals(came)
    original()


def _readable(original: Any, socket: Any, timeout: float | None) -> bool:
    session = recording()
    if session is None:
        return original(socket, timeout)
    return _looked(
        session,
        lambda: original(socket, timeout),
        lambda said: said["readable"],
        False,
        lambda found: json.dumps({"readable": found}).encode(),
    )


def _looked(
    session: Session,
    live: Callable[[], _Found],
    again: Callable[[Any], _Found],
    nothing: _Found,
    says: Callable[[_Found], bytes],
    then: Callable[[_Found], None] = lambda _: None,
) -> _Found:
    """What a look has found. ``nothing``: what one finds that the tape does not complete.

    ``then`` is called when the answer is on the tape, before the exchange ends.
    """
    call = session.driver.open("watch", "WATCH", b"", {}, effect="read")
    call.headless()

    def looks() -> _Found:
        with Outside():
            return live()

    def found_again(played: PlayedExchange) -> _Found:
        return again(json.loads(played.part(0))) if played.exchange.parts else nothing

    try:
        found = call.answer(looks, found_again)
        at = call.arrive().wait()
        call.part(says(found), at)
        then(found)
        call.end("complete", at)
    except BaseException:
        call.end("abandoned")
        raise
    return found


def _raise_signals(signals: list[int]) -> None:
    known = len(_came)
    for number in signals:
        signal.raise_signal(number)
    del _came[known:]


def _handling(original: Any, signals: Any, name: Any, handler: Any) -> None:
    original(signals, name, handler if isinstance(handler, int) else _noting(handler))


def _noting(handler: Callable[..., Any]) -> Callable[..., Any]:
    def noting(number: int, frame: Any) -> Any:
        _came.append(number)
        return handler(number, frame)

    noting.__dict__["playhead_handled"] = True  # these are on the tape already, see `boundaries.signals`
    return noting
