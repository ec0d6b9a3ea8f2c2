"""Finds the run of a program that has just been recorded."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from playhead_core.settings import RECORDED_BY, RECORDED_RUNS
from playhead_receiver.storage.runs.listing import page_cursor
from playhead_receiver.storage.values.run_summaries import Query
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_receiver.storage.api.store import Store
    from playhead_receiver.storage.values.run_summaries import RunSummary

PAGE = 100
SKEW_NS = 60_000_000_000
"""How far the clock of the machine may be set back while a program runs."""


class RecordedRuns:
    """Reports of the processes of a recorded program, in a file whose path they inherit."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._word: Final = os.urandom(8).hex()

    @property
    def word(self) -> str:
        """The word by which the processes are recognized whose reports do not arrive."""
        return self._word

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables with the path of the file, for the processes."""
        return {RECORDED_BY: self._word, RECORDED_RUNS: str(self._path)}

    @property
    def failed_checks(self) -> int:
        """Return the number of failed checks, delivered or not."""
        return sum("failed" in line for line in self._lines())

    def is_recorded(self) -> bool:
        """Return whether a process has recorded something."""
        return any("trace" in line for line in self._lines())

    def find(self, store: Store, pid: int, since_ns: int) -> RunSummary | None:
        """Return the run of process ``pid``, which was started at ``since_ns``; None if there is none.

        If that process is not Python itself (``uv run``, a shell, make), a run of one of its children:
        the first that is not empty, else the first.
        """
        traces = frozenset(bytes.fromhex(line["trace"]) for line in self._lines() if "trace" in line)
        since = None if traces else since_ns - SKEW_NS
        query = Query(mode=None, limit=PAGE, traces=traces or None, started_from_ns=since)
        below: list[RunSummary] = []
        for run in _runs(store, query):
            for start in (_start_of(store, bytes.fromhex(instance)) for instance in run.instances):
                if start.get(a.PLAYHEAD_PROCESS_RECORDED_BY) != self._word:
                    continue
                if start.get(a.PLAYHEAD_PROCESS_PID) == pid:
                    return run
                below.append(run)
        return min(below, key=lambda run: (not run.steps, run.is_empty, run.started_ns), default=None)

    def _lines(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in self._path.read_bytes().splitlines()]
        except (OSError, ValueError):
            return []


@contextmanager
def recorded_runs() -> Generator[RecordedRuns]:
    """`RecordedRuns` with a file for the time of the context."""
    number, path = tempfile.mkstemp(prefix="playhead-runs-")
    os.close(number)
    try:
        yield RecordedRuns(Path(path))
    finally:
        with suppress(OSError):
            os.unlink(path)


def _runs(store: Store, query: Query) -> Iterator[RunSummary]:
    """Yield all runs of a query, page by page."""
    while page := list(store.runs(query)):
        yield from page
        query = msgspec.structs.replace(query, after=page_cursor(page[-1], query))


def _start_of(store: Store, instance: bytes) -> Mapping[str, Any]:
    """Return attributes of a process instance's start fact."""
    first = next(iter(store.tape(instance).facts()), None)
    return {} if first is None or first.name != e.PLAYHEAD_PROCESS_START else first.attributes
