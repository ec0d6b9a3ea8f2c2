"""Describe what `subprocess` starts: its arguments, and the child's standard streams."""

from __future__ import annotations

import inspect
import os
from typing import Any

from playhead_core.facts import digest_of
from playhead_instrumentation.libraries.subprocess.pipes import ENDS, kind_of, may_answer
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart, words_of
from playhead_instrumentation.patching.patches import Unpatchable, required

PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
WANTED = ("args", "executable", "pass_fds", "cwd", "env", "shell", "start_new_session", *PIPES)
"""Parameters of ``Popen._execute_child`` that are needed."""


def parameters(popen: Any) -> list[str]:
    """Return the parameter names of ``Popen._execute_child``.

    Raises `Unpatchable` if a needed one is missing.
    """
    names = list(inspect.signature(required(popen, "_execute_child")).parameters)[1:]
    if missing := [name for name in WANTED if name not in names]:
        raise Unpatchable(f"Popen starts its child without {missing[0]}")
    return names


def started_of(popen: Any, given: dict[str, Any], *, stdin_bytes: int = 0) -> ProcessStart:
    """Return what ``Popen._execute_child`` starts with these arguments.

    ``stdin_bytes``: how many bytes to inspect of a file that is given as stdin.
    """
    words, executable = words_of(given["args"]), given["executable"]
    streams = (
        _stream(popen, given["p2cread"], given["p2cwrite"]),
        _stream(popen, given["c2pwrite"], given["c2pread"]),
        "stdout"
        if given["errwrite"] == given["c2pwrite"] != -1
        else _stream(popen, given["errwrite"], given["errread"]),
    )
    more: list[tuple[str, Any]] = []
    if stdin_bytes and streams[0] == "file":
        number = given["p2cread"]
        content = os.pread(number, stdin_bytes, os.lseek(number, 0, os.SEEK_CUR))
        more.append(("stdin", digest_of(content).hex()))
    if given["pass_fds"]:
        more.append(("descriptors", len(tuple(given["pass_fds"]))))
    return ProcessStart(
        "subprocess.Popen",
        words,
        bool(given["shell"]),
        "" if executable is None else os.fsdecode(executable),
        "" if given["cwd"] is None else os.fsdecode(given["cwd"]),
        given["env"],
        streams,
        tuple(more),
        tuple(number for number in given["pass_fds"] if may_answer(number)),
    )


def _stream(popen: Any, theirs: int, ours: int) -> str:
    if ours != -1:
        return "piped"
    if theirs == -1 or theirs in (0, 1, 2):
        return "inherited"
    if theirs == getattr(popen, "_devnull", None):
        return "null"
    return "child" if theirs in ENDS else kind_of(theirs)
