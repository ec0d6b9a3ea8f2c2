"""The run in the browser, which may grow or be deleted meanwhile."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_cli.targets.run_argument import Target, opened_run, reading
from playhead_core.errors import RunUnknown
from playhead_receiver.storage import Query
from playhead_replay import Run
from playhead_replay.timeline import RunStates

if TYPE_CHECKING:
    from playhead_cli.session.session import Session
    from playhead_receiver.storage.api.store import Store

AT_ONCE = 1000
"""Changes that are read from the store in one go."""


class OpenRun:
    """A run from a store or a file. Methods may take long; one thread at a time calls them."""

    def __init__(self, run: Run, store: Store | None = None, position: int = 0) -> None:
        """``store``: the source, None for a file; ``position``: of the store, before the read."""
        self.run = run
        self._moments = RunStates(run)
        self._origin: RunStates | None = None
        self._store = store
        self._position = position

    @property
    def is_stored(self) -> bool:
        """Whether it is in a store; else it is a file."""
        return self._store is not None

    @property
    def goes_on(self) -> bool:
        """Whether it had not ended when it was read."""
        return self._store is not None and self.run.status == "running"

    def require_kept(self) -> None:
        """`RunUnknown` if it was deleted since it was opened; `StoreUnavailable`."""
        if self._store is None:
            return
        try:
            self._store.resolve(self.run.trace_id)
        except RunUnknown:
            raise RunUnknown(f"{self.run.name} was deleted meanwhile", hint="q leaves") from None

    def grown(self) -> bool:
        """Read the run again if it has new data or has ended. Return whether it was read."""
        if self._store is None:
            return False
        trace_id, came, moved = bytes.fromhex(self.run.trace_id), False, True
        while moved:
            moved = False
            for change in self._store.changes(self._position, AT_ONCE):
                self._position, moved = change.position, True
                came = came or change.item.trace_id == trace_id
        if came or self._store.resolve(self.run.trace_id).status != self.run.status:
            self.run = Run.load(self._store, self.run.trace_id)
            return True
        return False

    @property
    def moments(self) -> RunStates:
        """The moments of the run, as far as it has been read."""
        if self._moments.run is not self.run:
            self._moments = RunStates(self.run)
        return self._moments

    def origin_moments(self) -> RunStates:
        """Those of the run that it was forked or replayed from. `RunUnknown`."""
        if self._origin is None:
            self._origin = RunStates(self.origin())
        return self._origin

    def origin(self) -> Run:
        """Return the run that it was forked or replayed from. `RunUnknown`."""
        trace_id = self.run.origin.partition(":")[0].partition("-")[0]
        if not trace_id or self._store is None:
            raise RunUnknown(f"{self.run.name} has no origin in this store")
        return Run.load(self._store, trace_id)

    def newest_branch(self) -> str:
        """Return the name of the run that was forked from it last; empty if there is none."""
        if self._store is None or not self.run.trace_id:
            return ""
        found = next(self._store.runs(Query(origin=self.run.trace_id, limit=1)), None)
        return "" if found is None else found.name


@contextmanager
def opened(session: Session, target: Target) -> Generator[OpenRun]:
    """The run of a target. `RunUnknown`, `RunAmbiguous`, `CorruptTape`."""
    if target.is_file or Path(target.run).is_file():
        with opened_run(session, target) as run:
            yield OpenRun(run)
        return
    with reading(session) as store:
        position = store.position()
        yield OpenRun(Run.load(store, target.run), store, position)
