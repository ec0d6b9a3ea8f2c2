"""Leaving the browser: links, commands of playhead, and the pager, which take over the terminal."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from playhead_cli.app import COMMANDS
from playhead_core.errors import UsageError, nearest
from playhead_core.untrusted.shown_text import visible
from playhead_receiver.system.writer_lock import running

if TYPE_CHECKING:
    from playhead_cli.session.session import Session
    from playhead_replay import Run


def words_of(text: str, here: str) -> list[str]:
    """Return the words of a typed command; ``%`` in it is ``here``. `UsageError`."""
    try:
        words = [word.replace("%", here) for word in shlex.split(text)]
    except ValueError as problem:
        raise UsageError(f"{text} cannot be read: {problem}") from None
    words = words[1:] if words[:1] == ["playhead"] else words
    if not words or words[0] not in COMMANDS:
        near = nearest(words[0], COMMANDS) if words else ""
        meant = f", did you mean {near}?" if near else ""
        raise UsageError(f"unknown command {words[0] if words else text}{meant}")
    return words


def run_command(session: Session, words: Sequence[str]) -> int:
    """Run a command on the same store, wait for Enter, and return its exit status."""
    command = [sys.executable, "-m", "playhead_cli", words[0], *_options(session), *words[1:]]
    sys.stderr.write(visible(f"$ {shlex.join(['playhead', *words])}\n"))
    sys.stderr.flush()
    before = signal.signal(signal.SIGINT, _heard)  # ^C ends the command, not the browser
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as problem:
        raise UsageError(f"{command[0]} cannot be started", cause=str(problem)) from None
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        input("\nEnter: back to the run ")
    except (EOFError, KeyboardInterrupt):
        pass
    return status


def show_in_pager(lines: Iterable[str]) -> None:
    """Show lines in the user's pager."""
    click.echo_via_pager("".join(f"{line}\n" for line in lines))


def link_to(session: Session, run: Run, number: int) -> str:
    """Return the address of a step on the pages of the receiver. `UsageError` if none serves them."""
    found = running(session.data_dir)
    place = session.settings.public_url or ("" if found is None else found.query)
    if not place:
        raise UsageError("no receiver serves pages of this store", hint="playhead up")
    return f"{place.rstrip('/')}/?{urlencode({'view': 'run', 'run': run.trace_id, 'step': number})}"


def _heard(number: int, frame: object) -> None:
    """Do nothing. Unlike an ignored signal, it is not ignored by the command, too."""


def _options(session: Session) -> list[str]:
    """Return the common options that this invocation was given."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in session.flags.items()]
    words += [f"--config={session.config}"] if session.config else []
    return [*words, *["--no-config"] * session.no_config]
