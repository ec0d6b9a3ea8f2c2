"""An operator in the process of the program: a desk of its own, without a receiver."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from opentelemetry.trace import NoOpTracer
from support.starting.running import until
from support.tapes.sessions import MemorySink, recording

from playhead_core.control.messages import ControlOrder, Halted
from playhead_core.control.rules import read_rules
from playhead_core.settings import Settings
from playhead_instrumentation.control.rules import Watching
from playhead_instrumentation.control.server import Desk
from playhead_instrumentation.session import session
from playhead_instrumentation.session.options import Tracing

T = TypeVar("T")

RUN = "ab" * 16
"""Trace id of the run of the process."""


class AtDesk:
    """Somebody at the desk of this process."""

    def __init__(self, desk: Desk, sink: MemorySink, by: str = "anna") -> None:
        self.desk = desk
        self.sink = sink
        self.by = by
        self._numbers = itertools.count(1)

    def order(self, what: Any, **said: Any) -> str:
        """Why the order could not be carried out; empty if it could."""
        said = {"lease_s": 60.0, **said}
        problem = self.desk.take(ControlOrder(next(self._numbers), what, RUN, self.by, **said))
        self.desk.let_go()
        return problem

    def halted(self, count: int = 1) -> list[Halted]:
        """Wait until so many wait."""
        until(lambda: len(self.desk.halted()) >= count, f"{count} wait")
        return self.desk.halted()


@contextmanager
def at_desk(*rules: str, **options: Any) -> Generator[AtDesk]:
    """A recording with a desk. All that is asked is of `RUN`, whatever provider other tests have set."""
    options.setdefault("tracing", Tracing(tracer=NoOpTracer))
    with recording(**options) as sink:
        running = session.current()
        assert running is not None
        desk = Desk(running.driver, lambda: RUN, Watching(lambda timeout_s: True), read_rules(rules))
        running.driver.control = desk
        try:
            yield AtDesk(desk, sink)
        finally:
            desk.close()


def going(program: Callable[[], T]) -> Future[T]:
    """``program`` in a thread of its own."""
    made: Future[T] = Future()

    def run() -> None:
        try:
            made.set_result(program())
        except BaseException as problem:
            made.set_exception(problem)

    threading.Thread(target=run, daemon=True).start()
    return made


EXCHANGES = Settings(quiet=True, level="exchanges")
