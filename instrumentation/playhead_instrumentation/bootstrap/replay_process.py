"""A process of a replay: the one that the launcher starts, or one started within it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from playhead_core.errors import ReplayFailed, TapeError
from playhead_core.facts import Fact
from playhead_core.process.own_descriptors import map_file
from playhead_core.tape.frames import scan_whole
from playhead_core.tape.indexed_tapes import IndexedTape, MemoryTape, gather
from playhead_instrumentation.bootstrap.early import with_site
from playhead_instrumentation.bootstrap.sdk import other_instrumentors
from playhead_instrumentation.bootstrap.start import begin_replay, start_recording
from playhead_instrumentation.libraries.subprocess.child_environment import WORKER
from playhead_instrumentation.recorder.options import Allowed
from playhead_instrumentation.recorder.tape_writer import TapeWriter
from playhead_instrumentation.replayer.opening import dies_with, ends_at_standstill
from playhead_instrumentation.session import checks, session
from playhead_instrumentation.session.options import Rerun, start_of
from playhead_instrumentation.session.session import Session, Told
from playhead_semconv import attributes as a
from playhead_semconv import events as e

HELD = "PLAYHEAD_REPLAY_HELD"
"""Variable that names a descriptor which all processes of a replay hold until they end."""


HELD_BY_KERNEL = "PLAYHEAD_HELD_BY_KERNEL"
"""Variable with the areas that the kernel isolates: network, files, processes."""

HELD_AT_MOST = 3
"""Number of areas."""


@dataclass(frozen=True, slots=True)
class ReplayProcess:
    """Parameters that the processes of one replay share."""

    now: str
    """Path of the first process's tape; the others write theirs beside it."""
    forks: str
    """File with the tapes of the processes started in it; empty: none are."""
    scratch: str
    origin: str
    live: tuple[str, ...]
    allow: tuple[str, ...]
    live_model: bool
    checks: tuple[str, ...]
    held_descriptor: int
    by_kernel: tuple[str, ...]
    """Areas that the kernel isolates; the process guards the rest itself."""
    instance: str = ""
    """Instance of the tape that answers a process started in it."""

    @staticmethod
    def held() -> int:
        """The descriptor that the launcher gave this process to hold; -1: none."""
        return int(os.environ.pop(HELD, "-1"))

    @staticmethod
    def held_by_kernel() -> tuple[str, ...]:
        """Areas from `playhead_replay.runner.isolated`; empty if it did not start this process."""
        return tuple(os.environ.pop(HELD_BY_KERNEL, "").split())

    def start(self, tape: IndexedTape, *, beside: bool = False) -> Session:
        """Answer this process from ``tape``. Raises `ReplayFailed`.

        ``beside``: it is not the first process of the replay.
        """
        now, scratch = Path(self.now), self.scratch
        if beside:
            now = now.with_suffix(f".{os.getpid()}{now.suffix}")
            scratch = scratch and f"{scratch}/{os.getpid()}"
        forks = load_several(Path(self.forks)) if self.forks else []
        allowed = Allowed(frozenset(self.live), frozenset(self.allow), self.live_model)
        start_recording(sink=TapeWriter(now), rerun=Rerun(tape, self.origin, allowed, scratch))
        running = _running()
        if beside:
            dies_with(running.driver, tape)
        ends_at_standstill(running.driver, tape)
        running.forks = forks
        running.for_worker = self._told
        other_instrumentors.load(_others(tape))
        self._see_to_the_rest()
        return running

    def begin(self, tape: IndexedTape) -> Session:
        """Answer a fork of a waiting process: for a run of one process with nothing live."""
        begin_replay(tape, self.origin, self.scratch)
        running = _running()
        ends_at_standstill(running.driver, tape)
        running.for_worker = self._told
        other_instrumentors.load(_others(tape))
        self._see_to_the_rest()
        return running

    def _see_to_the_rest(self) -> None:
        if len(self.by_kernel) < HELD_AT_MOST:
            from playhead_instrumentation.libraries.system import guards

            guards.watch(self.by_kernel, os.path.dirname(self.now))

    def _told(self, tape: IndexedTape) -> Told:
        told = replace(self, instance=tape.instance.hex())
        variables = {
            WORKER: msgspec.json.encode(told).decode(),
            "PYTHONPATH": with_site(os.environ),
        }
        return Told(variables, [self.held_descriptor] if self.held_descriptor >= 0 else [])


def _others(tape: IndexedTape) -> Sequence[str]:
    """The other distributions' instrumentors that were active in the recording."""
    return other_instrumentors.recorded(start_of(tape).get(a.PLAYHEAD_RUN_INSTRUMENTORS))


def _running() -> Session:
    running = session.current()
    if running is None or not running.driver.closed:
        raise ReplayFailed("the replay could not start, and the program is not run for real")
    return running


def start_worker() -> None:
    """Start the replay of a process that `multiprocessing` has started in a replay."""
    replayed = msgspec.json.decode(os.environ.pop(WORKER), type=ReplayProcess)
    wanted = bytes.fromhex(replayed.instance)
    tape = next(one for one in load_several(Path(replayed.forks)) if one.instance == wanted)
    for path in replayed.checks:
        checks.load(path)
    replayed.start(tape, beside=True)


def load(path: Path) -> IndexedTape:
    """The tape of a file. Raises `TapeError` where it is incomplete or has no content.

    The file is memory-mapped: only the parts in use are in memory.
    """
    with open(path, "rb") as file:
        size = path.stat().st_size
        mapped = map_file(file.fileno(), size) if size else None
    data = memoryview(mapped or b"")
    tape, *_ = gather(data, scan_whole(data, path.name)).tapes or [MemoryTape(())]
    tape.require_whole()
    if any(one.body is not None and one.body.size and not one.body.digest for one in _requests(tape)):
        raise TapeError("the tape holds no content: it was recorded with content=metadata")
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)  # drop the pages that were read to build the index
    return tape


def load_several(path: Path) -> list[IndexedTape]:
    """The tapes in a file with several processes."""
    data = path.read_bytes()
    return gather(data, scan_whole(data, path.name)).tapes


def _requests(tape: IndexedTape) -> Iterator[Fact]:
    return tape.named(e.PLAYHEAD_EXCHANGE_REQUEST)
