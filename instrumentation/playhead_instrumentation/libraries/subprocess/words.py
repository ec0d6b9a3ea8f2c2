"""How a process is started, as text: what the tape holds and what a replay looks up."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from playhead_core.rerun.headers import PLACEHOLDER
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a

UNSEEN = "pipe"
"""Name for a stream that goes to a pipe or socket of the program's own."""

OWN = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", "PLAYHEAD_")
"""Prefixes of the environment variables that playhead hands to a child."""

PARENT = "PLAYHEAD_PARENT_INSTANCE"
"""Variable that names the recorded process which started this one: 32 hex digits."""

EXCHANGE = "PLAYHEAD_PARENT_EXCHANGE"
"""Variable that names the exchange in which this process was started."""

AGENT = "PLAYHEAD_PARENT_AGENT"
"""Variable that names the agent whose run this process belongs to."""

JOINS = "PLAYHEAD_PARENT_JOINS"
"""Variable of a program that a recorded one started: requests that arrive there belong to the same run.

Value: the id of the process that started it, or `WHOLE`.
"""

LINEAGE = "PLAYHEAD_LINEAGE"
"""Variable (and setting) that names what a run and its retries have in common."""

WHOLE = "whole"
"""Value of `JOINS`: whatever the process becomes or starts belongs to the run, as its parent does."""

VARIABLES = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", PARENT, EXCHANGE, AGENT, JOINS)
"""Variables by which a child continues the trace and knows its parent."""

WORKER = "PLAYHEAD_REPLAY_WORKER"
"""Variable that tells a process of `multiprocessing`, at a replay, where its tape is."""

FORK = "os.fork"
"""Name for the start of a child that begins in the middle of our program."""

PYTHON, HERE = "{python}", "{cwd}"
"""Placeholders for the interpreter and the folder of the run: both may differ at a replay."""


class Started(msgspec.Struct, frozen=True):
    """Description of a process that the program starts."""

    call: str
    """``subprocess.Popen``, ``os.system``, …"""
    words: tuple[str, ...]
    """The command line; for a shell, the command alone."""
    shell: bool = False
    executable: str = ""
    """The executable, where it differs from the first word."""
    cwd: str = ""
    """The working directory, where it differs from ours."""
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


def described(started: Started, redactor: Redactor) -> tuple[bytes, dict[str, Any]]:
    """Return the body of the ask and the attributes of its fact, with credentials removed."""
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
    return json.dumps(asked, sort_keys=True, separators=(",", ":")).encode(), details


def difference(environ: Mapping[Any, Any] | None, redactor: Redactor) -> dict[str, str]:
    """Return the variables that differ from ours, sorted; placeholders replace credentials."""
    if environ is None:
        return {}
    changed: dict[str, str] = {}
    for key, value in sorted((os.fsdecode(key), os.fsdecode(value)) for key, value in environ.items()):
        if os.environ.get(key) == value or key.startswith(OWN):
            continue
        if redactor.secret("variable", key.upper()):
            redactor.learn(value)
            changed[key] = PLACEHOLDER
        else:
            changed[key] = portable(redactor.text(redactor.url(value)))
    return changed


def portable(text: str) -> str:
    """Return ``text`` with placeholders for the interpreter and the folder of the run."""
    for place, sign in ((sys.executable, PYTHON), (_folder(), HERE)):
        if place and place in text:
            text = _path(place).sub(sign, text)
    return text


_at_start: dict[str, str] = {}


def remember(folder: str) -> None:
    """Remember ``folder`` as the folder of the run."""
    _at_start["cwd"] = folder


def _folder() -> str:
    """Return the folder of the run; empty where it is not known, or is the root."""
    folder = _at_start.get("cwd", "")
    return folder if len(folder) > 1 else ""


def _path(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])")
