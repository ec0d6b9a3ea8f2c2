"""Messages of the exporter to the user: through logging, which falls back to stderr, once per matter."""

from __future__ import annotations

import contextlib
import logging
import os

from playhead_core.errors import PlayheadError
from playhead_core.process.interpreter_threads import make_lock
from playhead_core.untrusted.shown_text import visible

logger = logging.getLogger("playhead.exporter")

LONGEST_MESSAGE_S = 5.0
"""Seconds for which `DeliveryNotices.avoid_logging` waits for a message that is being logged."""


class DeliveryNotices:
    """Reports each matter once, until it is over. ``quiet``: errors only."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._reported: set[str] = set()
        self._to_stderr = False
        self._logging = make_lock()
        """Held while a message is logged, but not waited for: a handler of `logging` may report, too."""

    def avoid_logging(self) -> None:
        """Write to stderr from now on. Waits for a message that another thread is logging.

        eventlet makes the locks of `logging` into locks that no second system thread may wait for.
        """
        self._to_stderr = True
        if self._logging.acquire(timeout=LONGEST_MESSAGE_S):  # a forked child may inherit it held
            self._logging.release()

    def fail(self, matter: str, problem: PlayheadError) -> None:
        """Report a problem that the user must fix."""
        if matter not in self._reported:
            self._reported.add(matter)
            self._report(logging.ERROR, visible(str(problem)))

    def say(self, matter: str, text: str) -> None:
        """Report a problem that recovers by itself."""
        if matter not in self._reported:
            self._reported.add(matter)
            if not self._quiet:
                self._report(logging.WARNING, f"playhead: {visible(text)}")

    def over(self, matter: str, text: str = "") -> None:
        """The matter is settled; ``text`` is reported if its beginning was."""
        if matter in self._reported:
            self._reported.discard(matter)
            if text and not self._quiet:
                self._report(logging.WARNING, f"playhead: {visible(text)}")

    def _report(self, level: int, message: str) -> None:
        if not self._to_stderr:
            first = self._logging.acquire(blocking=False)
            try:
                logger.log(level, "%s", message)
            finally:
                if first:
                    self._logging.release()
        elif not logger.disabled and level >= logger.getEffectiveLevel():
            with contextlib.suppress(OSError):
                os.write(2, f"{message}\n".encode(errors="backslashreplace"))
