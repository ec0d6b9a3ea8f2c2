"""Jobs that other processes submit to the receiver that holds a data folder, as files in ``errands``.

Any process that may write to the folder may submit one; only its owner may write there. The job is
the file ``ID.ask``, the answer the file ``ID.answer``. Both files are written atomically.
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
    """Derive the attributes of the requests of runs again."""

    traces: list[str]
    """Trace ids."""


Job: TypeAlias = Collect | Delete | Mark | Rederive | Unindex


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job."""

    problem: str = ""
    """Why it was not done; empty if it was."""
    hint: str = ""
    run: str = ""
    """Name of the run that was marked."""
    deleted: Deleted = Deleted()
    calls: int = 0
    """Number of requests that were found to be calls to a model."""


class ReceiverGone(StoreError):
    """The receiver ended before it answered. The job may or may not have been done."""


_decode = msgspec.json.Decoder(Job)
_decode_answer = msgspec.json.Decoder(JobResult)


def execute(store: Store, job: Job, note: Callable[[str, str], None]) -> JobResult:
    """Execute a job. `NotOffered` if the engine of the store cannot.

    ``note`` is called with who deletes and the trace id, for each deleted run.
    """
    if isinstance(job, Collect):
        kept = needed(store, Retention)
        gone = apply(kept, job.policy, time.time_ns(), partial(note, BY_POLICY), job.by)
        return JobResult(deleted=_wiped(store, gone))
    if isinstance(job, Delete):
        runs, kept = named_to_go(store, job.runs), needed(store, Retention)
        gone = delete_runs(kept, runs, partial(note, BY_NAME), job.by, job.why)
        return JobResult(deleted=_wiped(store, gone))
    if isinstance(job, Unindex):
        needed(store, Search).unindex()
        return JobResult()
    if isinstance(job, Rederive):
        from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls

        unnamed_calls = UnnamedCalls(needed(store, CallDerivation))
        found = [unnamed_calls.derive_run(bytes.fromhex(one), again=True) for one in job.traces]
        return JobResult(calls=sum(found))
    run = store.resolve(job.run)
    needed(store, Retention).mark(bytes.fromhex(run.trace_id), job.word, job.on)
    return JobResult(run=run.name)


def _wiped(store: Store, gone: Deleted) -> Deleted:
    """Try to empty the logs, which a deletion leaves to maintenance because it may take long."""
    if gone.wiped or not isinstance(store, LogEmptying):
        return gone
    return msgspec.structs.replace(gone, wiped=store.empty_logs())


def submit(data_dir: Path, job: Job) -> JobResult:
    """Have the receiver of a data folder execute a job. Returns when it is done.

    `ReceiverGone` if the receiver ended; `StoreError` with the problem that the receiver reports.
    """
    folder = data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    name = uuid.uuid4().hex
    job_file, answer_file = folder / (name + ASK), folder / (name + ANSWER)
    keep(job_file, msgspec.json.encode(job))
    try:
        while not answer_file.exists():
            if running(data_dir) is None and not answer_file.exists():
                raise ReceiverGone(f"the receiver of {data_dir} went away", hint="run it again")
            time.sleep(POLL_S)
        answer = _decode_answer.decode(answer_file.read_bytes())
    finally:
        for path in (job_file, answer_file):
            path.unlink(missing_ok=True)
    if answer.problem:
        raise StoreError(answer.problem, hint=answer.hint)
    return answer


def execute_pending(data_dir: Path, store: Store, note: Callable[[str, str], None]) -> int:
    """Execute all pending jobs; return their number. ``note``: as in `execute`."""
    folder = data_dir / FOLDER
    job_files = sorted(folder.glob("*" + ASK)) if folder.is_dir() else []
    for path in job_files:
        try:
            answer = execute(store, _decode.decode(path.read_bytes()), note)
        except FileNotFoundError:
            continue  # the caller has stopped waiting
        except msgspec.DecodeError as problem:
            answer = JobResult(f"the job cannot be read: {problem}")
        except PlayheadError as problem:
            answer = JobResult(problem.what, problem.hint)
        with suppress(OSError):
            keep(path.with_suffix(ANSWER), msgspec.json.encode(answer))
            path.unlink(missing_ok=True)
    return len(job_files)
