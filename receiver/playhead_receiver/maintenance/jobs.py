"""Errands: requests to the receiver that holds a data folder, as files in ``errands``.

Anyone who may write to the folder may ask; only its owner may write there. The request is the file
``ID.ask``, the answer the file ``ID.answer``. Both files are written atomically.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from playhead_core.errors import PlayheadError, StoreError
from playhead_core.integrity.tombstones import Why
from playhead_receiver.storage import Store
from playhead_receiver.storage.api.maintenance import CallDerivation, LogEmptying
from playhead_receiver.storage.api.retention import Deleted, Retention
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.retention import Policy, apply, delete_runs, named_to_go
from playhead_receiver.system.durable_files import keep
from playhead_receiver.system.writer_lock import running

FOLDER = "errands"
ASK, ANSWER = ".ask", ".answer"
POLL_S = 0.05
BY_POLICY, BY_NAME = "playhead gc", "playhead delete"
"""Who deletes, as passed to ``note``."""


class Collect(msgspec.Struct, frozen=True, tag=True):
    """Delete the runs that a policy does not keep any longer."""

    policy: Policy
    by: str = ""
    """The user who asks, for the tombstones."""


class Delete(msgspec.Struct, frozen=True, tag=True):
    """Delete runs by name."""

    runs: list[str]
    """Names in the forms that `Store.resolve` takes."""
    by: str = ""
    why: Why = Why.DELETED


class Unindex(msgspec.Struct, frozen=True, tag=True):
    """Rebuild the search index."""


class Mark(msgspec.Struct, frozen=True, tag=True):
    """Put a mark on a run, or remove it."""

    run: str
    """A name in a form that `Store.resolve` takes."""
    word: str
    on: bool


class Rederive(msgspec.Struct, frozen=True, tag=True):
    """Determine the meanings of the requests of runs again."""

    traces: list[str]
    """Trace ids."""


Errand: TypeAlias = Collect | Delete | Mark | Rederive | Unindex


class ErrandResult(msgspec.Struct, frozen=True):
    """The result of an errand."""

    problem: str = ""
    """Why it was not done; empty if it was."""
    hint: str = ""
    run: str = ""
    """Name of the run that was marked."""
    deleted: Deleted = Deleted()
    calls: int = 0
    """Number of requests that were found to be calls to a model."""


class ReceiverGone(StoreError):
    """The receiver ended before it answered. The errand may or may not have been done."""


_decode = msgspec.json.Decoder(Errand)
_decode_answer = msgspec.json.Decoder(ErrandResult)


def do(store: Store, errand: Errand, note: Callable[[str, str], None]) -> ErrandResult:
    """Execute an errand. `NotOffered` if the engine of the store cannot.

    ``note`` is called with who deletes and the trace id, for each deleted run.
    """
    if isinstance(errand, Collect):
        kept = needed(store, Retention)
        gone = apply(kept, errand.policy, time.time_ns(), partial(note, BY_POLICY), errand.by)
        return ErrandResult(deleted=_wiped(store, gone))
    if isinstance(errand, Delete):
        runs, kept = named_to_go(store, errand.runs), needed(store, Retention)
        gone = delete_runs(kept, runs, partial(note, BY_NAME), errand.by, errand.why)
        return ErrandResult(deleted=_wiped(store, gone))
    if isinstance(errand, Unindex):
        needed(store, Search).unindex()
        return ErrandResult()
    if isinstance(errand, Rederive):
        from playhead_receiver.maintenance.unnamed_calls import Meanings

        meanings = Meanings(needed(store, CallDerivation))
        found = [meanings.of_run(bytes.fromhex(one), again=True) for one in errand.traces]
        return ErrandResult(calls=sum(found))
    run = store.resolve(errand.run)
    needed(store, Retention).mark(bytes.fromhex(run.trace_id), errand.word, errand.on)
    return ErrandResult(run=run.name)


def _wiped(store: Store, gone: Deleted) -> Deleted:
    """``gone``, after what a deletion leaves to the housekeeper was tried, which may take long."""
    if gone.wiped or not isinstance(store, LogEmptying):
        return gone
    return msgspec.structs.replace(gone, wiped=store.empty_logs())


def ask(data_dir: Path, errand: Errand) -> ErrandResult:
    """Have the receiver of a data folder execute an errand. Returns when it is done.

    `ReceiverGone` if the receiver ended; `StoreError` with the problem that the receiver reports.
    """
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    name = uuid.uuid4().hex
    asked, answered = folder / (name + ASK), folder / (name + ANSWER)
    keep(asked, msgspec.json.encode(errand))
    try:
        while not answered.exists():
            if running(data_dir) is None and not answered.exists():
                raise ReceiverGone(f"the receiver of {data_dir} went away", hint="run it again")
            time.sleep(POLL_S)
        answer = _decode_answer.decode(answered.read_bytes())
    finally:
        for path in (asked, answered):
            path.unlink(missing_ok=True)
    if answer.problem:
        raise StoreError(answer.problem, hint=answer.hint)
    return answer


def serve(data_dir: Path, store: Store, note: Callable[[str, str], None]) -> int:
    """Execute all pending errands; return how many there were. ``note``: as in `do`."""
    folder = data_dir / FOLDER
    asked = sorted(folder.glob("*" + ASK)) if folder.is_dir() else []
    for path in asked:
        try:
            answer = do(store, _decode.decode(path.read_bytes()), note)
        except FileNotFoundError:
            continue  # the caller has stopped waiting
        except msgspec.DecodeError as problem:
            answer = ErrandResult(f"the errand cannot be read: {problem}")
        except PlayheadError as problem:
            answer = ErrandResult(problem.what, problem.hint)
        with suppress(OSError):
            keep(path.with_suffix(ANSWER), msgspec.json.encode(answer))
            path.unlink(missing_ok=True)
    return len(asked)
