"""The program of a run that names none: a person names it; its spans may suggest it.

A run has none if it has no tape, or if its tape is HTTP traffic of another tool.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, cast

import msgspec

from playhead_core.errors import UsageError
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.untrusted.shown_text import visible
from playhead_replay.run.command import Command
from playhead_replay.run.run import Run
from playhead_semconv import attributes as a

_PYTHON = re.compile(r"(?:.*[/\\])?(?:python|pypy)[0-9.]*(?:\.exe)?\Z")
EXAMPLE = "playhead replay RUN --program 'python agent.py'"
LONGEST_SUGGESTION = 300


def command_of(program: str, folder: str) -> Command:
    """Return the command that ``program`` describes, as typed in a shell. `UsageError`.

    It begins with a Python or with a script. ``folder``: where it starts; empty: here.

    >>> command_of("python3 -m agent --fast", "").words()
    ['-m', 'agent', '--fast']
    """
    try:
        words = shlex.split(program)
    except ValueError as problem:
        raise UsageError(f"--program cannot be read: {problem}", hint=EXAMPLE) from None
    interpreter = words.pop(0) if words and _PYTHON.match(words[0]) else ""
    if words[:1] in (["-m"], ["-c"]) and len(words) > 1:
        option, value, *arguments = words
        script, source = (f"-m {value}", "") if option == "-m" else ("-c", value)
    elif words and (words[0].endswith(".py") or (interpreter and not words[0].startswith("-"))):
        script, source, arguments = words[0], "", words[1:]
    else:
        raise UsageError(
            f"--program names no Python program: {program}",
            cause="it begins with a Python or with a script",
            hint=EXAMPLE,
        )
    return Command(script, tuple(arguments), folder, interpreter, source=source, level="exchanges")


def has_program(run: Run) -> bool:
    """Whether the tape of ``run`` says how its process was started."""
    start = next(iter(run.tapes[0].facts()), None) if run.tapes else None
    return start is not None and bool(start.attributes.get(a.PLAYHEAD_RUN_ARGV))


def with_program(run: Run, command: Command) -> Run:
    """Return ``run`` as if ``command`` had made its tape, which names no program."""
    first, *others = run.tape.facts()
    told = msgspec.structs.replace(first, attributes={**first.attributes, **command.attributes()})
    return Run.of_tape(MemoryTape([told, *others], run.tape.instance), (), run.name)


def named_program(run: Run) -> str:
    """Return the command line that the spans of a run name, for a person to judge; else nothing.

    Spans come from any sender, so the command is suggested and never executed by itself.
    """
    for span in run.spans:
        words: Any = span.resource.get("process.command_args") or span.attributes.get(
            "process.command_args"
        )
        if isinstance(words, list | tuple) and words:
            return visible(shlex.join(map(str, cast("list[Any]", words))))[:LONGEST_SUGGESTION]
        line = span.resource.get("process.command_line")
        if isinstance(line, str) and line:
            return visible(line)[:LONGEST_SUGGESTION]
    return ""
