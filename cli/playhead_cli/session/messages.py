"""Messages and errors of playhead on stderr. A failure to write them changes no result."""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

from playhead_core.errors import PlayheadError
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_cli.json_output.runs import PrintedError, PrintedFailure


def write_message(text: str) -> None:
    """Write ``text`` to stderr, or nothing if its reader went away or its disk is full."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard_rest(sys.stderr)


def discard_rest(stream: TextIO) -> None:
    """Send what ``stream`` still buffers to the null device: Python flushes it again at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


PIPE_CLOSED = 141
"""Exit status when the reader of stdout went away, as is usual on Unix."""


def exit_status(problem: BaseException) -> int:
    """Exit status of a command that failed with ``problem``."""
    if isinstance(problem, PlayheadError):
        return problem.exit_status
    if isinstance(problem, click.ClickException):
        return 2
    return 1


def error_object(problem: BaseException) -> PrintedError:
    """Return ``code``, ``what``, ``cause`` and ``hint`` of any exception."""
    if isinstance(problem, PlayheadError):
        return {
            "code": problem.code,
            "what": problem.what,
            "cause": problem.cause,
            "hint": problem.hint,
        }
    if isinstance(problem, click.ClickException):
        context = problem.ctx if isinstance(problem, click.UsageError) else None
        path = context.command_path if context is not None else "playhead"
        message = problem.format_message().rstrip(".")
        return {"code": "usage", "what": message, "cause": "", "hint": f"{path} --help"}
    return {
        "code": "error",
        "what": f"{type(problem).__name__}: {problem}",
        "cause": "",
        "hint": "-v shows where",
    }


def show_failure(problem: BaseException, *, as_json: bool, verbose: bool) -> None:
    """Report the error on stderr."""
    found = error_object(problem)
    if verbose:
        write_message(visible("".join(traceback.format_exception(problem))))
    if as_json:
        printed: PrintedFailure = {"schema_version": 1, "error": found}
        said = json.dumps(printed, ensure_ascii=False)
    else:
        lines = [f"error[{found['code']}]: {found['what']}"]
        told = ("cause", found["cause"]), ("hint", found["hint"])
        lines += [f"{name}: {text}" for name, text in told if text]
        said = "\n".join(lines)
    write_message(visible(said) + "\n")
