"""What workers of Celery wait for: kombu watches the sockets of its connections by itself.

Each look is an exchange without a span. Its answer says which of the sockets can be read, counted in
the order in which they were given to the watcher, and which signals came meanwhile: a worker is ended by
one.
"""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.boundaries.recording import recording
from playhead_instrumentation.driver.played_exchange import PlayedExchange
from playhead_instrumentation.runtime.lanes import Outside
from playhead_instrumentation.runtime.patching import PATCHES, required

log = logging.getLogger(__name__)

WATCHERS: Final = ("_epoll", "_poll", "_select")
"""Classes of kombu, of which it takes one."""

WATCHED: Final = "_playhead_watched"
"""Attribute of a watcher: its `Watched`."""

_came: Final[list[int]] = []
"""Signals that came and that the program handles, in order."""


def patch_watchers(module: ModuleType) -> None:
    """Patch `kombu.utils.eventio`."""
    for name in WATCHERS:
        layers = {"register": _register, "unregister": _unregister, "poll": _look}
        PATCHES.around_all(required(module, name), layers)


def patch_signals(module: ModuleType) -> None:
    """Patch `celery.platforms`, by which a worker says how it handles signals."""
    PATCHES.around(required(module, "Signals"), "__setitem__", _handling)


class Watched:
    """The sockets that a watcher watches, and their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._count = 0

    def add(self, descriptor: int) -> None:
        """A socket is watched from now on."""
        if descriptor not in self._numbers:
            self._numbers[descriptor] = self._count
            self._count += 1

    def drop(self, descriptor: int) -> None:
        """A socket is not watched any longer."""
        self._numbers.pop(descriptor, None)

    def said(self, ready: Any, signals: list[int]) -> bytes:
        """What a look has found, for the tape."""
        numbers = self._numbers
        found = [[numbers[one], events] for one, events in ready or () if one in numbers]
        return json.dumps({"ready": found, "signals": signals}).encode()

    def found(self, said: Any) -> list[tuple[int, int]]:
        """What a look has found, from the tape."""
        descriptors = {number: descriptor for descriptor, number in self._numbers.items()}
        return [(descriptors[one], events) for one, events in said["ready"] if one in descriptors]


def _watched(watcher: Any) -> Watched:
    found = watcher.__dict__.get(WATCHED)
    if found is None:
        found = watcher.__dict__[WATCHED] = Watched()
    return found


def _descriptor(watched: Any) -> int:
    return watched if isinstance(watched, int) else watched.fileno()


def _register(original: Any, watcher: Any, watched: Any, *args: Any) -> Any:
    _watched(watcher).add(_descriptor(watched))
    return original(watcher, watched, *args)


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
    call = session.driver.open("watch", "WATCH", b"", {}, effect="read")
    call.headless()
    before = len(_came)

    def live() -> tuple[Any, list[int]]:
        with Outside():
            return original(watcher, *args, **kwargs), []

    def again(played: PlayedExchange) -> tuple[Any, list[int]]:
        if not played.exchange.parts:
            return None, []
        said = json.loads(played.part(0))
        return watched.found(said), said["signals"]

    try:
        ready, signals = call.answer(live, again)
        at = call.arrive().wait()
        call.part(watched.said(ready, [*signals, *_came[before:]]), at)
        for number in signals:
            signal.raise_signal(number)
        call.end("complete", at)
    except BaseException:
        call.end("abandoned")
        raise
    return ready


def _handling(original: Any, signals: Any, name: Any, handler: Any) -> None:
    original(signals, name, handler if isinstance(handler, int) else _noting(handler))


def _noting(handler: Callable[..., Any]) -> Callable[..., Any]:
    def noting(number: int, frame: Any) -> Any:
        _came.append(number)
        return handler(number, frame)

    return noting
