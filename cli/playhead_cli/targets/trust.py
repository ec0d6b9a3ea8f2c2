"""Runs recorded elsewhere: their programs are shown and confirmed before they run."""

from __future__ import annotations

import os
import sys
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import reading
from playhead_core.errors import UsageError
from playhead_core.process.environment import may_be_restored
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.storage.api.retention import IMPORTED, Retention
from playhead_receiver.storage.api.store import needed
from playhead_replay.run.command import Command
from playhead_replay.run.inbound_requests import requests_of
from playhead_replay.runner.child_processes import commands_of

if TYPE_CHECKING:
    from playhead_cli.targets.run_argument import Target
    from playhead_receiver.storage import Store
    from playhead_replay import Run

KNOWN = "known-tapes"
"""File in the data folder: digests of tape files that were written here or trusted once."""

PIECE_BYTES = 1 << 20
MOST_CHARS = 4000
"""Characters shown of a program that the tape contains."""

trust_option = click.option(
    "--trust", is_flag=True, help="Run the program of a tape that was recorded on another machine."
)


def is_foreign(session: Session, target: Target, run: Run) -> bool:
    """Return whether a run was recorded elsewhere: an unknown file, or an imported run."""
    if target.is_file or Path(target.run).is_file():
        return not is_known(session.data_dir, Path(target.run))
    with reading(session) as store:
        return _is_marked(store, run.trace_id)


def is_known(data_dir: Path, file: Path) -> bool:
    """Return whether a tape file was written from this store or trusted once."""
    try:
        return digest_of_file(file) in (data_dir / KNOWN).read_text().split()
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def note_known(data_dir: Path, file: Path) -> None:
    """Remember ``file`` with its present content as known. Does nothing if that cannot be written."""
    if not file.is_file() or is_known(data_dir, file):
        return
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with open(os.open(data_dir / KNOWN, flags, 0o600), "w") as list_:
            list_.write(f"{digest_of_file(file)}\n")
    except OSError:
        return


def digest_of_file(file: Path) -> str:
    """Digest of a file's content, hex."""
    digest = blake2b(digest_size=32)
    with open(file, "rb") as content:
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def require_trust(session: Session, target: Target, run: Run, *, trust: bool, live: bool) -> bool:
    """Ask before a foreign run is executed. Return whether it is foreign.

    Shows what would run and asks, unless ``trust``. ``live``: its program will run for real.
    `UsageError` if the user refuses, or if there is no terminal to ask on.
    """
    if not is_foreign(session, target, run):
        return False
    for line in told(run, live=live):
        session.say(line)
    if trust:
        _remember(session, target)
        return True
    what = f"{run.name} was not recorded here, and this runs its program"
    if session.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            what,
            cause="it runs with your rights, and there is no terminal to ask for confirmation",
            hint="check the command above; if you trust it, pass --trust",
        )
    if not click.confirm(visible(f"playhead: {what}. Run it?"), err=True, default=False):
        raise UsageError(what, cause="you do not trust it")
    _remember(session, target)
    return True


def told(run: Run, *, live: bool) -> list[str]:
    """Describe the programs that would run, one line each."""
    lines: list[str] = []
    for command in (run.command, *commands_of(run)):
        assert isinstance(command, Command)
        lines.append(f"command: python {str(command)[:MOST_CHARS]}")
        lines.append(f"folder: {command.cwd or '.'}")
        allowed = [name for name in command.environment if may_be_restored(name, live=live)]
        refused = [name for name in command.environment if name not in allowed]
        lines += [f"environment: {', '.join(allowed)}"] if allowed else []
        lines += [f"not passed on: {', '.join(refused)}"] if refused else []
    for one in (request for tape in run.tapes for request in requests_of(tape)):
        lines.append(f"application: {one.application[:MOST_CHARS]}, from: {one.folder or '.'}")
    lines.append(
        "requests without a recorded response are sent for real, with your credentials"
        if live
        else "access to the network is blocked, and to your files if the kernel supports it"
    )
    return list(dict.fromkeys(lines))


def _remember(session: Session, target: Target) -> None:
    if target.is_file or Path(target.run).is_file():
        note_known(session.data_dir, Path(target.run))


def _is_marked(store: Store, trace_id: str) -> bool:
    return IMPORTED in needed(store, Retention).marks().get(bytes.fromhex(trace_id), ())
