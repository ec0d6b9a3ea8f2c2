"""A thread that alternates work and rest until it is stopped."""

from __future__ import annotations

import threading
import traceback

from playhead_core.errors import PlayheadError

POLL_S = 0.5
"""Seconds of rest after a problem."""


class RepeatingThread:
    """Calls `turn` repeatedly. After a problem, which is kept in `problem`, it tries again."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"playhead-{name}", daemon=True)
        self.problem = ""
        """The problem of the last turn; empty if it had none."""

    def turn(self) -> float:
        """Do some of the work; return the seconds to rest after it."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current turn, and wait for that. Idempotent."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        rest_s = 0.0
        while not self._stop.wait(rest_s):
            try:
                rest_s = self.turn()
                self.problem = ""
            except PlayheadError as problem:
                self.problem = problem.what
                rest_s = POLL_S
            except OSError as problem:
                self.problem = str(problem)
                rest_s = POLL_S
            except Exception as problem:  # a bug of ours; the thread goes on
                if str(problem) != self.problem:
                    traceback.print_exc()
                self.problem = str(problem)
                rest_s = POLL_S
