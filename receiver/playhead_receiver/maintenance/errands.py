"""What somebody at the data folder wants done by the receiver that holds it: files in ``errands``.

Whoever may write to the folder may ask; it is the owner's alone. A file is asked for by its name
``ID.ask`` and answered as ``ID.answer``; both are there whole or not at all.
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

from playhead_receiver.host.durable_files import keep
from playhead_receiver.host.writer_lock import running
from playhead_receiver.store import Upkeep
from playhead_receiver.store.keeping.retention import Policy, apply, delete_runs, named_to_go
from playhead_receiver.store.protocol.upkeep import Deleted
from playhead_semconv.custody.tombstones import Why
from playhead_semconv.errors import PlayheadError, StoreError

FOLDER = "errands"
ASK, ANSWER = ".ask", ".answer"
POLL_S = 0.05
BY_POLICY, BY_NAME = "playhead gc", "playhead delete"
"""Who deletes."""


class Collect(msgspec.Struct, frozen=True, tag=True):
    """Delete the runs whose time is over by a policy."""

    policy: Policy
    by: str = ""
    """The user who asks; the tombstones name them."""


class Delete(msgspec.Struct, frozen=True, tag=True):
    """Delete runs that somebody has named."""

    runs: list[str]
    """As `Store.resolve` takes them."""
    by: str = ""
    why: Why = Why.DELETED


class Unindex(msgspec.Struct, frozen=True, tag=True):
    """Make the index of the search anew."""


class Mark(msgspec.Struct, frozen=True, tag=True):
    """Put a mark on a run, or take it off."""

    run: str
    """As `Store.resolve` takes it."""
    word: str
    on: bool


class Rederive(msgspec.Struct, frozen=True, tag=True):
    """Find out anew what requests of runs mean."""

    traces: list[str]
    """Trace ids."""


Errand: TypeAlias = Collect | Delete | Mark | Rederive | Unindex


class Answer(msgspec.Struct, frozen=True):
    """What became of an errand."""

    problem: str = ""
    """Why nothing did; empty if it was done."""
    hint: str = ""
    run: str = ""
    """Name of the run that was marked."""
    deleted: Deleted = Deleted()
    calls: int = 0
    """Requests that were found to be calls to a model."""


class ReceiverGone(StoreError):
    """The receiver went away before it answered. What it was asked may be done or not."""


_decode = msgspec.json.Decoder(Errand)
_decode_answer = msgspec.json.Decoder(Answer)


def do(store: Upkeep, errand: Errand, note: Callable[[str, str], None]) -> Answer:
    """Do an errand. ``note`` is told who deletes a run, and its trace id."""
    if isinstance(errand, Collect):
        gone = apply(store, errand.policy, time.time_ns(), partial(note, BY_POLICY), errand.by)
        return Answer(deleted=gone)
    if isinstance(errand, Delete):
        runs = named_to_go(store, errand.runs)
        return Answer(deleted=delete_runs(store, runs, partial(note, BY_NAME), errand.by, errand.why))
    if isinstance(errand, Unindex):
        store.unindex()
        return Answer()
    if isinstance(errand, Rederive):
        from playhead_receiver.maintenance.unnamed_calls import Meanings

        meanings = Meanings(store)
        found = [meanings.of_run(bytes.fromhex(one), again=True) for one in errand.traces]
        return Answer(calls=sum(found))
    run = store.resolve(errand.run)
    store.mark(bytes.fromhex(run.trace_id), errand.word, errand.on)
    return Answer(run=run.name)


def ask(data_dir: Path, errand: Errand) -> Answer:
    """Have the receiver of a data folder do an errand; returns when it is done.

    `ReceiverGone`; `StoreError` with what the receiver says of it.
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


def serve(data_dir: Path, store: Upkeep, note: Callable[[str, str], None]) -> int:
    """Do what is asked for; how many errands that were. ``note``: as in `do`."""
    folder = data_dir / FOLDER
    asked = sorted(folder.glob("*" + ASK)) if folder.is_dir() else []
    for path in asked:
        try:
            answer = do(store, _decode.decode(path.read_bytes()), note)
        except FileNotFoundError:
            continue  # whoever asked waits no more
        except msgspec.DecodeError as problem:
            answer = Answer(f"the errand cannot be read: {problem}")
        except PlayheadError as problem:
            answer = Answer(problem.what, problem.hint)
        with suppress(OSError):
            keep(path.with_suffix(ANSWER), msgspec.json.encode(answer))
            path.unlink(missing_ok=True)
    return len(asked)
