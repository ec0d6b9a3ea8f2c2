"""Describe how a process is started: the text that the tape holds and a replay looks up."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from playhead_core.process.environment import storable_word
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_instrumentation.libraries.subprocess.child_environment import OWN
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a

UNSEEN = "pipe"
"""Name for a stream that goes to a pipe or socket of the program's own."""

FORK = "os.fork"
"""Name for the start of a child that begins in the middle of our program."""

PYTHON, HERE = "{python}", "{cwd}"
"""Placeholders for the interpreter and the folder of the run: both may differ in a replay."""


class ProcessStart(msgspec.Struct, frozen=True):
    """Description of a process that the program starts."""

    call: str
    """``subprocess.Popen``, ``os.system``, …"""
    words: tuple[str, ...]
    """The command line; for a shell, the command alone."""
    shell: bool = False
    executable: str = ""
    """The executable, if it differs from the first word."""
    cwd: str = ""
    """The working directory, if it differs from ours."""
    environ: Mapping[Any, Any] | None = None
    """The environment; None: ours."""
    streams: tuple[str, str, str] = ("inherited", "inherited", "inherited")
    """stdin, stdout, stderr: inherited, piped, null, file, stdout, pipe."""
    more: tuple[tuple[str, Any], ...] = ()
    """Further values that distinguish this start from others."""
    answers: tuple[int, ...] = ()
    """Inherited descriptors through which the child may send data."""

    @property
    def key(self) -> str:
        """Name of the program, used as the key of the exchange."""
        if self.call == FORK:
            return FORK
        first = self.words[0] if self.words else self.executable
        if self.shell:
            return f"sh: {(first.split() or [''])[0]}"
        return HERE_PYTHON if first == sys.executable else os.path.basename(first) or first


HERE_PYTHON = "python"


def words_of(args: Any) -> tuple[str, ...]:
    """Return a command line as words of text."""
    if isinstance(args, str | bytes | os.PathLike):
        return (os.fsdecode(cast("str", args)),)
    return tuple(os.fsdecode(word) for word in args)


def describe(started: ProcessStart, redactor: Redactor) -> tuple[bytes, dict[str, Any]]:
    """Return the body of the request and the attributes of its fact, with credentials removed."""
    if started.shell:
        words = [redactor.text(redactor.url(word)) for word in started.words]
    else:
        words = redactor.arguments(started.words)
    if not redactor.content:
        words = [started.key]
    asked: dict[str, Any] = {
        "call": started.call,
        "command": [portable(word) for word in words],
        "streams": list(started.streams),
    }
    if started.shell:
        asked["shell"] = True
    if started.executable:
        asked["executable"] = portable(redactor.text(started.executable))
    if started.cwd:
        asked["cwd"] = portable(redactor.text(started.cwd))
    changed = difference(started.environ, redactor)
    if changed:
        asked["environment"] = changed
    asked.update(started.more)
    details: dict[str, Any] = {
        a.PROCESS_COMMAND_ARGS: words,
        a.PROCESS_WORKING_DIRECTORY: redactor.text(started.cwd) or os.getcwd(),
    }
    unseen = [
        name
        for name, kind in zip(("stdin", "stdout", "stderr"), started.streams, strict=True)
        if kind == UNSEEN and name != "stdin"
    ]
    unseen += [f"descriptor {number}" for number in started.answers]
    if unseen:
        details[a.PLAYHEAD_PROCESS_UNSEEN] = unseen
    if redactor.content and (inherited := _inherited(started.environ, redactor)):
        details[a.PLAYHEAD_PROCESS_ENVIRONMENT] = [
            storable_word(f"{name}={value}") for name, value in inherited.items()
        ]
    return json.dumps(asked, sort_keys=True, separators=(",", ":")).encode(), details


def difference(environ: Mapping[Any, Any] | None, redactor: Redactor) -> dict[str, str]:
    """Return the variables that differ from ours, sorted; placeholders replace credentials."""
    if environ is None:
        return {}
    changed: dict[str, str] = {}
    for key, value in sorted((os.fsdecode(key), os.fsdecode(value)) for key, value in environ.items()):
        if os.environ.get(key) != value and not key.startswith(OWN):
            changed[key] = _scrubbed(key, value, redactor)
    return changed


def _inherited(environ: Mapping[Any, Any] | None, redactor: Redactor) -> dict[str, str]:
    """Return the variables that the child has from ours, and that were set since our start, sorted."""
    given = None if environ is None else {os.fsdecode(key) for key in environ}
    return {
        key: _scrubbed(key, value, redactor)
        for key, value in sorted(os.environ.items())
        if _environ_at_start.get(key) != value
        and (given is None or key in given)
        and not key.startswith(OWN)
    }


def _scrubbed(key: str, value: str, redactor: Redactor) -> str:
    if redactor.secret("variable", key.upper()):
        redactor.learn(value)
        return PLACEHOLDER
    return portable(redactor.text(redactor.url(value)))


def portable(text: str) -> str:
    """Return ``text`` with placeholders for the interpreter and the folder of the run."""
    for place, sign in ((sys.executable, PYTHON), (_folder(), HERE)):
        if place and place in text:
            text = _path(place).sub(sign, text)
    return text


_at_start: dict[str, str] = {}
_environ_at_start: dict[str, str] = {}


def remember(folder: str) -> None:
    """Remember the environment, and ``folder`` as the folder of the run."""
    _at_start["cwd"] = folder
    _environ_at_start.clear()
    _environ_at_start.update(os.environ)


def _folder() -> str:
    """Return the folder of the run; empty if it is not known, or is the root."""
    folder = _at_start.get("cwd", "")
    return folder if len(folder) > 1 else ""


def _path(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])")
