"""How a process is started, in words: what stands on the tape and is looked up at a replay."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a
from playhead_semconv.rerun.given_headers import PLACEHOLDER

UNSEEN = "pipe"
"""How a stream is called that goes to a pipe or socket of the program's own."""

OWN = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", "PLAYHEAD_")
"""Variables, by how they begin, that are handed to a child by us."""

PARENT = "PLAYHEAD_PARENT_INSTANCE"
"""Variable that names the recorded process which started this one: 32 hex digits."""

EXCHANGE = "PLAYHEAD_PARENT_EXCHANGE"
"""Variable that names the exchange in which it was started."""

AGENT = "PLAYHEAD_PARENT_AGENT"
"""Variable that names the agent of whose run it is a part."""

JOINS = "PLAYHEAD_PARENT_JOINS"
"""Variable of a program that a recorded one has started: what comes to it belongs to the same run.

The id of the process that has started it, or `WHOLE`.
"""

WHOLE = "whole"
"""Whatever it becomes or starts belongs to the run, too: the process that started it does itself."""

VARIABLES = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", PARENT, EXCHANGE, AGENT, JOINS)
"""Variables by which a child goes on with the trace and knows whose it is."""

WORKER = "PLAYHEAD_REPLAY_WORKER"
"""Variable that tells a process of `multiprocessing`, at a replay, where its tape is."""

FORK = "os.fork"
"""How a child is started that begins in the middle of our program."""

PYTHON, HERE = "{python}", "{cwd}"
"""In the place of the interpreter and of the folder of the run: a replay may have others."""


@dataclass(frozen=True, slots=True)
class Started:
    """What the program starts."""

    call: str
    """``subprocess.Popen``, ``os.system``, …"""
    words: tuple[str, ...]
    """The command line; of a shell's, the command alone."""
    shell: bool = False
    executable: str = ""
    """Where it is another than the first word."""
    cwd: str = ""
    """Where it is another than ours."""
    environ: Mapping[Any, Any] | None = None
    """None: ours."""
    streams: tuple[str, str, str] = ("inherited", "inherited", "inherited")
    """stdin, stdout, stderr: inherited, piped, null, file, stdout, pipe."""
    more: tuple[tuple[str, Any], ...] = ()
    """What else makes it another."""
    answers: tuple[int, ...] = ()
    """Descriptors that it is given, through which it may answer."""

    @property
    def key(self) -> str:
        """The program, as the exchange is named."""
        if self.call == FORK:
            return FORK
        first = self.words[0] if self.words else self.executable
        if self.shell:
            return f"sh: {(first.split() or [''])[0]}"
        return HERE_PYTHON if first == sys.executable else os.path.basename(first) or first


HERE_PYTHON = "python"


def words_of(args: Any) -> tuple[str, ...]:
    """A command line as text."""
    if isinstance(args, str | bytes | os.PathLike):
        return (os.fsdecode(cast("str", args)),)
    return tuple(os.fsdecode(word) for word in args)


def described(started: Started, redactor: Redactor) -> tuple[bytes, dict[str, Any]]:
    """The body of the ask, and the attributes of its fact; credentials removed."""
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
    """The variables that a child has otherwise than we have, sorted; a credential by a placeholder."""
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
    """``text`` with placeholders for the interpreter and the folder of the run."""
    for place, sign in ((sys.executable, PYTHON), (_folder(), HERE)):
        if place and place in text:
            text = _path(place).sub(sign, text)
    return text


_at_start: dict[str, str] = {}


def remember(folder: str) -> None:
    """``folder``: of the run."""
    _at_start["cwd"] = folder


def _folder() -> str:
    """The folder of the run; empty where none is known, or it is the root."""
    folder = _at_start.get("cwd", "")
    return folder if len(folder) > 1 else ""


def _path(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])")
