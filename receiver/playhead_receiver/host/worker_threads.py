"""A thread that works, rests, and works again, until it is told to stop."""

from __future__ import annotations

import threading
import traceback

from playhead_semconv.errors import PlayheadError

POLL_S = 0.5
"""How long it rests after a problem."""


class Worker:
    """Does `turn` again and again. A problem is kept, and the work tried again."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"playhead-{name}", daemon=True)
        self.problem = ""
        """Why nothing is done just now; empty while it is."""

    def turn(self) -> float:
        """Do some of the work; how long to rest after it, in seconds."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop soon; the rest is done later. Idempotent."""
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
            except Exception as problem:  # a fault of ours; a thread that is no more helps nobody
                if str(problem) != self.problem:
                    traceback.print_exc()
                self.problem = str(problem)
                rest_s = POLL_S
