"""Sessions in this process: record a function, and replay it from its tape."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
from opentelemetry.trace import NoOpTracer

from playhead_core.facts import Fact
from playhead_core.rerun.plans import Plan
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.bootstrap.compose import open_driver
from playhead_instrumentation.libraries.common import installing
from playhead_instrumentation.libraries.files import covered
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.recorder.options import NOTHING, Allowed
from playhead_instrumentation.session import process_facts, session
from playhead_instrumentation.session.environment import Imported
from playhead_instrumentation.session.options import Rerun, Tracing
from playhead_instrumentation.session.session import Session

T = TypeVar("T")

CAUSAL = Settings(quiet=True, level="causal")
NO_SPANS = Tracing(NoOpTracer())
"""Whatever provider another test of this process has set."""

# Each session looks at what is installed and imported: in this process, longer than many a test takes.
_installed = functools.cache(process_facts.installed)
process_facts.installed = lambda path: _installed(tuple(path))


class _New(Imported):
    """Looks at the modules of this process again when there are more of them."""

    _count = 0

    def news(self) -> dict[str, Any]:
        if len(sys.modules) == self._count:
            return {}
        self._count = len(sys.modules)
        return super().news()


_imported = _New()


def tell_imports_once(running: Session) -> None:
    """At its end, a session names those modules alone that no session of this process has named."""
    running.process._imported = _imported


class MemorySink:
    """Keeps facts in memory."""

    def __init__(self) -> None:
        self.instance = os.urandom(16)
        self.facts: list[Fact] = []
        self._lock = threading.Lock()

    def append(self, fact: Fact) -> int:
        with self._lock:
            seq = len(self.facts)
            self.facts.append(msgspec.structs.replace(fact, instance=self.instance, seq=seq))
        return seq

    def tape(self) -> MemoryTape:
        return MemoryTape(self.facts, self.instance)

    def named(self, name: str) -> list[Fact]:
        return [fact for fact in self.facts if fact.name == name]


@contextmanager
def recording(
    tape: MemoryTape | None = None,
    settings: Settings | None = None,
    *,
    allowed: Allowed = NOTHING,
    plan: Plan | None = None,
    **parts: Any,
) -> Iterator[MemorySink]:
    """A session for the length of the block; given a tape, a replay of it, or with a plan a fork."""
    sink = MemorySink()
    rerun = None if tape is None else Rerun(tape, allowed=allowed, plan=plan)
    running = session.start(
        settings or CAUSAL,
        sink,
        rerun=rerun,
        open_driver=open_driver,
        **{"tracing": NO_SPANS, **parts},
    )
    tell_imports_once(running)
    installing.watch(PATCHES, running)
    try:
        yield sink
    finally:
        session.stop(0)
        covered.release()


def record(program: Callable[[], T], **options: Any) -> tuple[T, MemoryTape]:
    """The result of ``program``, and its tape."""
    with recording(**options) as sink:
        result = program()
    return result, sink.tape()


def replay(program: Callable[[], T], tape: MemoryTape, **options: Any) -> tuple[T, MemoryTape]:
    """The result of ``program`` replayed from ``tape``, and the tape of the replay."""
    with recording(tape, **options) as sink:
        result = program()
    return result, sink.tape()
