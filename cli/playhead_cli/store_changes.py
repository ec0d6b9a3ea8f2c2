"""Shared by commands that change a store: deletion, import, audit log entries."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.output.words import count
from playhead_cli.running.agent import delivering_to
from playhead_cli.running.receiver_for_run import receiver_for
from playhead_cli.session.session import Session
from playhead_core.errors import ReceiverRefused, RunUnknown, StoreBusy, UsageError
from playhead_exporter.delivery import Signal
from playhead_exporter.shipping.endpoint_answers import Accepted
from playhead_exporter.shipping.transports import transport_opener
from playhead_receiver.archive.run_files import incoming
from playhead_receiver.auth import Audit, TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.maintenance.jobs import execute, submit
from playhead_receiver.storage import open_store
from playhead_receiver.storage.retention import names_of_runs
from playhead_replay.forks.workspace import sweep

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedDeletion
    from playhead_exporter.shipping.endpoint_answers import Transport
    from playhead_receiver.archive.run_files import Incoming
    from playhead_receiver.auth.audit import Action
    from playhead_receiver.maintenance.jobs import Job, JobResult
    from playhead_receiver.storage import Deleted


MOST_SHOWN = 20
SEND_TIMEOUT_S = 30.0


def user() -> str:
    """Return the name of the user who runs this command; the user id if there is no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for this user id
        return f"user {os.getuid()}"


def confirm_deletion(session: Session, names: list[str], what: str, again: str) -> bool:
    """List what would be deleted and ask for confirmation; ``again``: the same command without a
    question.

    `UsageError` if there is no terminal to ask on.
    """
    if session.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not session.as_json:
            for name in names:
                click.echo(name)
        raise UsageError(
            f"{what} would be deleted: confirm with --yes (no terminal to ask on)", hint=again
        )
    for name in names[:MOST_SHOWN]:
        click.echo(name, err=True)
    if len(names) > MOST_SHOWN:
        session.say(f"and {len(names) - MOST_SHOWN} more")
    if click.confirm(f"playhead: delete {what} for good?", err=True):
        return True
    session.say("nothing was deleted")
    return False


def carry_out(session: Session, job: Job) -> JobResult:
    """Execute a job, or have it executed by the receiver that holds the data folder."""
    try:
        store = open_store(session.store)
    except StoreBusy:
        return submit(session.data_dir, job)
    access = AccessFile(session.data_dir)
    book, audit = TokenBook(access), Audit(access)

    def note(by: str, trace_id: str) -> None:
        if book.any_live():
            audit.note("", by, "", "delete", trace_id)

    try:
        return execute(store, job, note)
    finally:
        access.close()
        store.close()


def report_deleted(session: Session, done: Deleted, names: list[str] | None = None) -> None:
    """Remove orphaned folders of forks, then report what was deleted.

    ``names``: the names on the command line, for JSON; None if there were none.
    """
    store = open_store(session.store, read_only=True)
    try:
        folders = sweep(session.data_dir, lambda: names_of_runs(store))
    finally:
        store.close()
    if session.as_json:
        printed: PrintedDeletion = {
            "schema_version": 1,
            "deleted": {
                "runs": done.runs,
                "spans": done.spans,
                "facts": done.facts,
                "blobs": done.blobs,
                "checkpoints": done.checkpoints,
                "fork_folders": len(folders),
            },
            "wiped": done.wiped,
        }
        if names is not None:
            printed["runs"] = names
        session.print_json(printed)
        return
    session.say(
        f"deleted {count(done.runs, 'run')}: {count(done.spans, 'span')},"
        f" {count(done.facts, 'fact')}, {count(done.blobs, 'blob')}"
        + (f", {count(done.checkpoints, 'checkpoint')}" if done.checkpoints else "")
    )
    if folders:
        session.say(f"removed {count(len(folders), 'folder')} of forks that are gone")
    if session.settings.store:
        session.say("the database overwrites deleted data when it runs VACUUM")
    elif not done.wiped:
        session.say("some deleted data is not overwritten yet; a receiver does it later")


def note(session: Session, by: str, action: Action, subject: str) -> None:
    """Write an action of ``by`` to the audit log, if the folder has tokens. `StoreUnavailable`.

    Does nothing if the folder is not writable, as with a copy on a read-only disk.
    """
    if not os.access(session.data_dir, os.W_OK):
        return
    file = AccessFile(session.data_dir)
    try:
        if TokenBook(file).any_live():
            Audit(file).note("", by, "", action, subject)
    finally:
        file.close()


@contextmanager
def _receiving(session: Session) -> Generator[Transport]:
    """A transport to the receiver of the data folder, which is embedded if none runs."""
    with receiver_for(session.settings) as receiver:
        settings = delivering_to(session.settings, receiver.listening())
        _, open_transport = transport_opener(settings)
        transport = open_transport()
        try:
            yield transport
        finally:
            transport.close()


@contextmanager
def sender(session: Session) -> Generator[Callable[[Incoming], int]]:
    """Yield a function that sends the content of a file to the receiver of the data folder.

    It returns the number of rejected records.
    """
    with _receiving(session) as transport:
        yield lambda found: found.send(transport)


def send_logs(session: Session, request: bytes) -> None:
    """Send an OTLP request with log records to the receiver of the data folder. `ReceiverRefused`."""
    with _receiving(session) as transport:
        answer = transport.send(Signal.LOGS, request, SEND_TIMEOUT_S)
    if not isinstance(answer, Accepted):
        raise ReceiverRefused("the receiver rejected the note", cause=answer.reason)


def send_file(session: Session, path: Path) -> tuple[int, dict[str, str]]:
    """Send a tape file.

    Returns the number of rejected records, and the names of its runs by trace id.
    """
    found = incoming(path)
    with sender(session) as send:
        rejected = send(found)
    return rejected, names_of(session, found.trace_ids)


def names_of(session: Session, trace_ids: set[str]) -> dict[str, str]:
    """Return names of the runs of these traces, by trace id."""
    store = open_store(session.store, read_only=True)
    names: dict[str, str] = {}
    try:
        for trace_id in sorted(trace_ids):
            try:
                names[trace_id] = store.resolve(trace_id).name
            except RunUnknown:
                continue
    finally:
        store.close()
    return names
