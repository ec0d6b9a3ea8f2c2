"""The replays and forks of a receiver: with a limit on how many run at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from playhead_core.errors import PlayheadError, UsageError
from playhead_receiver.config.configuration import Programs
from playhead_receiver.reruns.child import Ordered, Rerun

AT_ONCE = 2
"""Largest number of child processes."""
KEPT = 16
"""Number of reruns that are remembered; the oldest ones that have ended are forgotten."""


class TooManyReruns(PlayheadError):
    """The maximum number of child processes is running."""

    code = "too-many-reruns"


class NotExecuted(UsageError):
    """The receiver executes no programs."""

    code = "not-executed"


class Reruns:
    """Starts the command `playhead` for replays and forks. Safe from any thread."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._lock = threading.Lock()
        self._all: dict[str, Rerun] = {}

    def start(
        self, ordered: Ordered, words: Sequence[str], ended: Callable[[], None] = lambda: None
    ) -> Rerun:
        """Start a rerun. `TooManyReruns`, `NotStarted`.

        ``words``: arguments of the command. ``ended`` is called when it has ended.
        """
        with self._lock:
            running = sum(one.state == "running" for one in self._all.values())
            if running >= AT_ONCE:
                raise TooManyReruns(
                    f"{running} replays and forks are running already",
                    hint="wait for one, or cancel one",
                )
            words = [*self._programs.command, *words]
            made = Rerun(ordered, words, self._programs.environment, ended)
            for old in [one for one in self._all.values() if one.state != "running"]:
                if len(self._all) >= KEPT:
                    del self._all[old.id]
            self._all[made.id] = made
            return made

    def get(self, id: str) -> Rerun | None:
        """A rerun by its id; None if unknown."""
        with self._lock:
            return self._all.get(id)

    def all(self) -> list[Rerun]:
        """All remembered reruns, newest first."""
        with self._lock:
            return list(reversed(self._all.values()))

    def close(self) -> None:
        """Kill all running reruns."""
        with self._lock:
            for one in self._all.values():
                one.close()
