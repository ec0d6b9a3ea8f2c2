"""The child processes of a run that were recorded themselves, and the services that it called.

Each child is executed again on its own, from its own tape. That tape holds what the parent wrote to the
child's stdin, and what the child wrote to its parent is compared with it. The parent is answered from
its own tape. So neither the number of concurrent children nor their speed affects the result.
A service is executed in the same way: it gets its recorded requests, its caller the recorded answers.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead_core.errors import PlayheadError
from playhead_core.facts import ExchangeId
from playhead_core.process.environment import Places, readable, text_of_word
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.command import Command
from playhead_replay.run.held_tapes import gaps_of
from playhead_replay.run.inbound_requests import requests_of
from playhead_replay.run.run import Run
from playhead_replay.runner.environment import moved
from playhead_semconv import attributes as a
from playhead_semconv import events as e

FORK = "os.fork"
"""Name of the call that starts a process as a fork of its parent."""

MAIN = "__main__"
"""Module of an application that the script of its process holds."""

WORKERS = "multiprocessing."
"""Prefix of the calls with which `multiprocessing` starts a process."""

TERMINAL = "pty."
"""Prefix of the calls that fork onto a pseudo-terminal."""

STANDING_FOR = {"python": "{python}", "cwd": "{cwd}"}
"""Placeholders for the interpreter and the folder of the run in what a parent passed to its child."""


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A recorded process that another process of the run started, or a service that it called."""

    name: str
    """Its script and first words, unique within a run: ``child.py one``, ``child.py one (2)``."""
    tape: IndexedTape
    command: Command
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables that the parent set or changed for it."""
    why_not: str = ""
    """Why it is not executed again; empty if it can be."""
    within: bool = False
    """Whether its parent starts it during the replay: a fork, or a process of `multiprocessing`."""

    @property
    def is_service(self) -> bool:
        """Whether no process of the run started it: it served a request of the run."""
        return not self.begun_in[0]

    @property
    def begun_in(self) -> tuple[str, str]:
        """Process instance and exchange id of the parent that started it."""
        return begun_in(self.tape)


def children_of(
    run: Run, places: Places, interpreter: str, folder: Path, *, force: bool = False
) -> Iterator[ChildProcess]:
    """The child processes of ``run``, in order of their start.

    ``places``: maps the recorded folders to the local ones. ``interpreter`` and ``folder``: the local
    ones of the process in which the run began. ``force``: execute a changed script too.
    """
    known = {tape.instance.hex(): tape for tape in run.tapes}
    names = {run.tape.instance.hex(): name_of(run.command)}
    seen: Counter[str] = Counter()
    variables: dict[str, dict[str, str]] = {}

    def once(name: str) -> str:
        seen[name] += 1
        return f"{name} ({seen[name]})" if seen[name] > 1 else name

    for tape in run.tapes:
        first = next(tape.facts(), None)
        parent = None if first is None else first.attributes.get(a.PLAYHEAD_PROCESS_PARENT_INSTANCE)
        if first is None or tape is run.tape:
            continue
        command = Command.of_fact(first)
        name = name_of(command)
        here = Path(places.text(command.cwd))
        if parent not in known:  # no process of the run started it: it shares the trace
            if requests_of(tape):
                command = moved(command, here, places)
                why_not = _service_why_not(tape, command, here)
                yield ChildProcess(once(name), tape, command, here, why_not=why_not)
            continue
        exchange = first.attributes.get(a.PLAYHEAD_PROCESS_PARENT_EXCHANGE)
        why_not = _why_not(tape, exchange)
        given: dict[str, str] = {}
        asked, inherited = ({}, ()) if why_not else _request(known[str(parent)], str(exchange))
        call = str(asked.get("call", ""))
        if call.startswith(WORKERS):
            name = " ".join([names.get(str(parent), "python"), *asked.get("command", ())])
        names[tape.instance.hex()] = name
        if call.startswith(TERMINAL):
            why_not = "it was forked onto a terminal"
        if call == FORK or call.startswith(WORKERS):
            name = f"fork of {name}" if call == FORK else name
            yield ChildProcess(once(name), tape, command, here, within=True)
            continue
        if not why_not:
            command = moved(command, here, places)
            why_not = _not_here(command, here, force)
            told = {"python": interpreter, "cwd": str(folder)}
            given = variables[tape.instance.hex()] = {
                **variables.get(str(parent), {}),
                **_given(asked, inherited, told),
            }
        yield ChildProcess(once(name), tape, command, here, given, why_not)


def commands_of(run: Run) -> list[Command]:
    """How the processes other than the first one were started, according to their tapes."""
    found = (next(tape.facts(), None) for tape in run.tapes if tape is not run.tape)
    return [Command.of_fact(first) for first in found if first is not None]


def name_of(command: Command) -> str:
    """Name of a process in a report: its script, and its first argument that is not an option."""
    script = command.script if command.is_module else os.path.basename(command.script)
    script = readable(script) or "python"
    words = [
        readable(word) for word in command.arguments[:1] if not word.startswith("-") and len(word) <= 40
    ]
    return " ".join([script, *words])


def _service_why_not(tape: IndexedTape, command: Command, folder: Path) -> str:
    for one in requests_of(tape):
        module = one.application.partition(":")[0]
        if not module:
            return "nothing leads to the application that served its requests"
        path = folder / one.folder / module.replace(".", "/")
        if module == MAIN:
            path = command.script_path(folder) or folder
        if not path.exists() and not path.with_suffix(".py").is_file():
            return f"its application is not here: {module} in {folder}"
    return _incomplete(tape)


def _why_not(tape: IndexedTape, exchange: Any) -> str:
    if not exchange:
        return "it was forked, or the tape of its parent has its output, as for an MCP server"
    return _incomplete(tape)


def _incomplete(tape: IndexedTape) -> str:
    if gaps := gaps_of(tape):
        return str(gaps[0])
    bodies = (fact.body for fact in tape.named(e.PLAYHEAD_EXCHANGE_REQUEST))
    if any(body is not None and body.size and not body.digest for body in bodies):
        return "it was recorded without content"
    return ""


def _not_here(command: Command, folder: Path, force: bool) -> str:
    if not folder.is_dir():
        return f"its folder is not here: {folder}"
    try:
        if not force:
            command.require_unchanged(folder)
        elif (path := command.script_path(folder)) is not None and not path.is_file():
            return f"{command.script} is not in {folder}"
    except PlayheadError as problem:
        return problem.what
    return ""


def _given(
    asked: Mapping[str, Any], inherited: Sequence[str | bytes], told: Mapping[str, str]
) -> dict[str, str]:
    """Environment variables that the parent set for its child, according to the parent's tape."""
    changed = dict(word.split("=", 1) for word in map(text_of_word, inherited) if "=" in word)
    changed |= asked.get("environment", {})
    for key, sign in STANDING_FOR.items():
        changed = {name: value.replace(sign, told[key]) for name, value in changed.items()}
    return changed


def _request(parent: IndexedTape, exchange: str) -> tuple[dict[str, Any], Sequence[str | bytes]]:
    """The request with which a parent started a child, decoded; and the variables that it inherits."""
    asked = parent.exchange(ExchangeId.parse(exchange))
    if asked is None:
        return {}, ()
    inherited = asked.ask.details.get(a.PLAYHEAD_PROCESS_ENVIRONMENT, ())
    return json.loads(parent.read(asked.ask.body)), inherited


def begun_in(tape: IndexedTape) -> tuple[str, str]:
    """Process instance and exchange in which the process of a tape was started, or empty strings."""
    first = next(tape.facts(), None)
    at = {} if first is None else first.attributes
    named = a.PLAYHEAD_PROCESS_PARENT_INSTANCE, a.PLAYHEAD_PROCESS_PARENT_EXCHANGE
    return str(at.get(named[0], "")), str(at.get(named[1], ""))


def forks_below(tape: IndexedTape, children: Sequence[ChildProcess]) -> list[ChildProcess]:
    """Those of ``children`` that the process of a tape starts itself, and all of their descendants."""
    found: list[ChildProcess] = []
    parents = [tape.instance.hex()]
    for parent in parents:  # grows during the loop
        forks = [one for one in children if one.within and one.begun_in[0] == parent]
        found += forks
        parents += [one.tape.instance.hex() for one in forks]
    return found


def matched(
    tape: IndexedTape, now: IndexedTape, forks: Sequence[ChildProcess], left: Sequence[IndexedTape]
) -> Iterator[tuple[ChildProcess, IndexedTape | None]]:
    """Each of ``forks`` with the tape among ``left`` that its replay wrote; None if there is none.

    ``tape`` and ``now``: tapes of the parent process, recorded and replayed.
    """
    instances = {tape.instance.hex(): now.instance.hex()}
    by_place = {begun_in(one): one for one in left}
    for fork in forks:
        parent, exchange = fork.begun_in
        found = by_place.get((instances.get(parent, ""), exchange))
        if found is not None:
            instances[fork.tape.instance.hex()] = found.instance.hex()
        yield fork, found
