"""What the folders above tell this one about the running process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from playhead_instrumentation.patching.program import Program


class Watch(Protocol):
    """Observer of the threads that wait for the outside world."""

    def leaves(self) -> None:
        """This thread begins to wait for the outside world."""
        ...

    def returns(self) -> None:
        """This thread has finished the wait and is about to wait at the gate."""
        ...

    def calls_back(self, place: int) -> None:
        """The current thread, which has its permit, has ended the wait of the thread ``place``."""
        ...

    def goes_on(self) -> None:
        """This thread was called back, and continues when it has the permit."""
        ...


class Permits(Protocol):
    """The permits that let one thread run at a time."""

    def waits(self, until: float | None = None) -> None:
        """This thread waits. ``until``: when it continues by itself, in seconds (`REAL.now_s`)."""
        ...

    def goes_on(self) -> None:
        """This thread continues when it has the permit."""
        ...

    def interrupted(self) -> AbstractContextManager[None]:
        """Context in which this thread runs, within whatever it waits for, the handler of a signal."""
        ...

    def is_held(self) -> bool:
        """Whether this thread holds the lock of the permits, so that it must not wait for one."""
        ...

    def when_free(self, call: Callable[[], object]) -> None:
        """Call ``call`` while no other thread holds that lock."""
        ...


class HubLike(Protocol):
    """The hub of a thread's greenlets, as an event loop in which they wait."""

    def call_soon(self, call: Callable[..., Any], *args: Any) -> None:
        """Call ``call`` in the hub, behind the callbacks that are scheduled."""
        ...

    def parked(self) -> Any:
        """What a greenlet waits with: `get` switches to the hub until ``switch`` is called there."""
        ...

    def holds(self) -> None:
        """A wait at the gate begins."""
        ...

    def lets_go(self) -> None:
        """A wait at the gate is over."""
        ...


class RegisteredStates(Protocol):
    """The states that the program has registered."""

    def halted(self) -> None:
        """The program is halted here, or was when it was recorded: report them."""
        ...

    def repeat_mark(self, kind: str, label: str) -> None:
        """At a replay: a checkpoint was made here that the program had not asked for."""
        ...

    def repeat_edit(self, name: str) -> None:
        """At a replay: an operator has changed one of them here."""
        ...


class Runtime:
    """What the folders above tell this one. Everything may be set anew during the life of a process."""

    __slots__ = ("hub", "lane_ended", "outside", "permits", "program", "registered")

    def __init__(self) -> None:
        self.program: Program | None = None
        """The program, if playhead runs it by itself; None: the interpreter runs it."""
        self.outside: Watch | None = None
        """Told when a thread begins and ends a wait for the outside world."""
        self.permits: Permits | None = None
        """The permits of strict threads; None: threads run without permits."""
        self.registered: RegisteredStates | None = None
        """The registered states; None: the program cannot have registered any."""
        self.hub: Callable[[], HubLike | None] | None = None
        """The hub in which the current greenlet waits. None: threads are no greenlets."""
        self.lane_ended: Callable[[Any], None] | None = None
        """Called with its lane in each ending thread or executor job, before others can see its end."""


RUNTIME: Final = Runtime()
"""That of this process."""
