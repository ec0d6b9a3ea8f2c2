"""An operator in the process of the program: a control server of its own, without a receiver."""

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
from playhead_instrumentation.control.rules import RuleEvaluator
from playhead_instrumentation.control.server import ControlServer
from playhead_instrumentation.session import session
from playhead_instrumentation.session.options import Tracing

T = TypeVar("T")

RUN = "ab" * 16
"""Trace id of the run of the process."""


class AtControlServer:
    """Somebody at the control server of this process."""

    def __init__(self, control_server: ControlServer, sink: MemorySink, by: str = "anna") -> None:
        self.control_server = control_server
        self.sink = sink
        self.by = by
        self._numbers = itertools.count(1)

    def order(self, what: Any, **said: Any) -> str:
        """Why the order could not be carried out; empty if it could."""
        said = {"lease_s": 60.0, **said}
        problem = self.control_server.take(ControlOrder(next(self._numbers), what, RUN, self.by, **said))
        self.control_server.let_go()
        return problem

    def halted(self, count: int = 1) -> list[Halted]:
        """Wait until so many wait."""
        until(lambda: len(self.control_server.halted()) >= count, f"{count} wait")
        return self.control_server.halted()


@contextmanager
def at_control_server(*rules: str, **options: Any) -> Generator[AtControlServer]:
    """A recording with a control server. All requests are of `RUN`."""
    options.setdefault("tracing", Tracing(tracer=NoOpTracer()))
    with recording(**options) as sink:
        running = session.current()
        assert running is not None
        control_server = ControlServer(
            running.driver, lambda: RUN, RuleEvaluator(lambda timeout_s: True), read_rules(rules)
        )
        running.driver.control = control_server
        try:
            yield AtControlServer(control_server, sink)
        finally:
            control_server.close()


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
