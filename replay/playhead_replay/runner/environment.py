"""Replay on another machine or in another folder: adapts the command and reports differences."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from playhead_core.facts import digest_of
from playhead_core.file_names import real_name
from playhead_core.process import installed_packages
from playhead_core.process.environment import Places, is_kept
from playhead_core.rerun.headers import PLACEHOLDER
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.protocols import Tape
from playhead_replay.run.command import Command
from playhead_replay.runner.process_start import DROPPED
from playhead_semconv import attributes as a
from playhead_semconv import events as e

PROBE_TIMEOUT_S = 60.0

MODULE_BYTES = 16 << 20
"""Largest size of a module's file, in bytes."""

MATTER_MOST = frozenset(
    (
        "openai anthropic httpx httpx2 httpcore requests urllib3 aiohttp botocore boto3 grpcio "
        "websockets google-genai mistralai cohere litellm mcp langchain langchain-core "
        "langchain-openai langgraph pydantic-ai openai-agents"
    ).split()
)
"""Distributions that make the requests: another version may send different requests."""

_COMPARED_OTHERWISE = ("PYTHONPATH", "PYTHONHASHSEED", "PYTEST_")
"""Beginnings of variables that are not compared: modules are, and pytest sets its own."""

_VARIABLE = re.compile(
    rb"""\b(?:environb?(?:\.(?:get|pop|setdefault))?|getenvb?)\s*[\[(]\s*b?["'](\w{1,128})["']"""
)
"""A variable that a program reads by its name."""

LONGEST_VALUE = 80
"""How many characters of a variable's value are shown."""

_INSTALLED = (
    Path(installed_packages.__file__).read_text("utf-8")
    + """
import json, platform, sys
version = ".".join(map(str, sys.version_info[:3]))
here = f"{sys.implementation.name} {sys.platform} {platform.machine()}"
print(json.dumps([version, here, installed(sys.path)]))
"""
)
"""Version and platform of an interpreter, and what is installed there, as a recording has it."""

_MODULES = """
import importlib.metadata as m, json
by_module = m.packages_distributions().items()
print(json.dumps({module: {name: m.version(name) for name in names} for module, names in by_module}))
"""
"""The distributions of each module, with versions: a third of a second where much is installed."""


def moved(command: Command, folder: Path, places: Places | None = None) -> Command:
    """``command`` with its paths adapted to a program that lies in ``folder``.

    ``places``: maps the recorded folders to the local ones; by default it is derived from ``folder``.
    """
    places = places or here_from(command, folder)
    words = tuple(places.text(word) for word in command.arguments)
    environment = {name: places.text(value) for name, value in command.environment.items()}
    script = places.text(command.script)
    if os.path.isabs(script) and not os.path.isfile(script):
        script = _found_below(script, folder) or script
    return replace(command, script=script, arguments=words, environment=environment)


def here_from(command: Command, folder: Path) -> Places:
    """Maps the folders of the recorded process to those of this process."""
    pairs = [(command.cwd, os.path.abspath(folder))]
    if command.folders.get("home"):
        pairs.append((command.folders["home"], os.path.expanduser("~")))
    return Places(pair for pair in pairs if all(len(one) > 1 for one in pair))


def _found_below(script: str, folder: Path) -> str:
    """The longest suffix of the path ``script`` that is a file below ``folder``."""
    parts = Path(os.path.normpath(script)).parts[1:]  # no step out of the folder
    for start in range(len(parts)):
        candidate = folder.joinpath(*parts[start:])
        if candidate.is_file():
            return str(candidate)
    return ""


def differences(tape: Tape, command: Command, folder: Path, interpreter: str) -> Iterator[str]:
    """Relevant differences from the recorded environment, one line each, most serious first."""
    at = _start_of(tape)
    yield from _modules(tape, here_from(command, folder))
    if (
        command.interpreter
        and command.interpreter != interpreter
        and not os.path.exists(command.interpreter)
    ):
        yield f"the recorded interpreter {command.interpreter} is not here; {interpreter} runs instead"
    imported = list(_told(tape, a.PLAYHEAD_RUN_IMPORTED))
    if a.PLAYHEAD_RUN_PLATFORM not in at:
        return
    probed = _asked(interpreter, _INSTALLED)
    if probed is None:
        return
    version, platform, present = probed
    recorded = command.python_version
    if recorded and recorded != version:
        same = recorded.rpartition(".")[0] == version.rpartition(".")[0]
        word = "may matter" if same else "matters: the order and the text of much depend on it"
        yield f"Python was {recorded}, now {version}: {word}"
    if at[a.PLAYHEAD_RUN_PLATFORM] != platform:
        yield f"recorded on {at[a.PLAYHEAD_RUN_PLATFORM]}, now on {platform}"
    if set(at.get(a.PLAYHEAD_RUN_PACKAGES, ())) <= set(present):
        return  # what was installed is installed
    installed: dict[str, dict[str, str]] = _asked(interpreter, _MODULES) or {}
    packages = {
        name: number for module in imported for name, number in installed.get(module, {}).items()
    }
    there = {_normal(name) for found in installed.values() for name in found}
    gone = [module for module in imported if module not in installed]
    yield from _packages(at, packages, [module for module in gone if _normal(module) not in there])


def folder_difference(command: Command, folder: Path) -> Iterator[str]:
    """Say that the program runs in another folder than the recorded one."""
    if command.cwd and os.path.realpath(command.cwd) != os.path.realpath(folder):
        yield f"recorded in {command.cwd}, now in {folder}"


def variable_differences(
    command: Command, inherited: Mapping[str, str], child: Mapping[str, str]
) -> Iterator[str]:
    """Name the kept variables that differ here from the recorded ones, one line each.

    ``inherited``: the variables of this process; ``child``: those that the program gets. Only recorded
    values are shown, which have no credentials; a variable that holds one is not compared.
    """
    recorded = command.environment
    here = {name for name in inherited if is_kept(name)} if recorded else set[str]()
    for name in sorted(recorded.keys() | here):
        before, given, value = recorded.get(name), child.get(name), inherited.get(name)
        if name.startswith(_COMPARED_OTHERWISE) or before == "" or PLACEHOLDER in (before or ""):
            continue
        if before is None and given is None:
            yield f"{name} was not set in the recording, but is set here: the program does not get it"
        elif before is None:
            yield f"{name} was not set when recorded, and is now"
        elif given != before:
            yield f"{name} was {_short(before)}, now {'another' if given else 'not set'}"
        elif value is not None and value != before:
            yield f"{name} has another value here: the program gets the recorded {_short(before)}"


def unrecorded_variables(tape: Tape, command: Command, folder: Path) -> list[str]:
    """Names of the variables that the program's own files read and that no tape holds."""
    places = here_from(command, folder)
    paths = [places.text(word.rpartition("=")[0]) for word in _told(tape, a.PLAYHEAD_RUN_MODULES)]
    script = command.script_path(folder)
    names: set[str] = set()
    for path in {*map(Path, paths), *([script] if script else ())}:
        with contextlib.suppress(OSError):
            names.update(word.decode() for word in _VARIABLE.findall(_source_at(path)))
    names.discard("HOME")  # recorded as a folder
    return sorted(name for name in names if not is_kept(name) and not name.startswith(DROPPED))


def _short(value: str) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[:LONGEST_VALUE]}…"


def _modules(tape: Tape, places: Places) -> Iterator[str]:
    for word in _told(tape, a.PLAYHEAD_RUN_MODULES):
        path, _, digest = word.rpartition("=")
        here = places.text(path)
        try:
            now = digest_of(_source_at(Path(here))).hex()[: len(digest)]
        except OSError:
            yield f"{here} is not here; the recorded program has imported it"
            continue
        if now != digest:
            yield f"{here} has changed (tape {digest[:8]}, now {now[:8]}): the replay may part there"


def _source_at(path: Path) -> bytes:
    """What is in a module's file.

    `OSError` if it is no regular file, such as a device that a tape may name.
    """
    if not path.is_file() or path.stat().st_size > MODULE_BYTES:
        raise FileNotFoundError(path)
    return path.read_bytes()


def _packages(at: Mapping[str, Any], now: Mapping[str, str], gone: list[str]) -> Iterator[str]:
    """Differences in package versions. ``gone``: modules that belong to no installed distribution."""
    recorded = dict(
        str(one).split("==", 1) for one in at.get(a.PLAYHEAD_RUN_PACKAGES, []) if "==" in one
    )
    known = {_normal(name): version for name, version in recorded.items()}
    lines: list[tuple[bool, str]] = []
    for name, version in now.items():
        before = known.get(_normal(name))
        if before is not None and before != version and not name.startswith("playhead"):
            most = _normal(name) in MATTER_MOST
            matters = ", and it makes requests: they may differ" if most else ""
            lines.append((not most, f"{name} was {before}, now {version}{matters}"))
    for module in gone:
        name = _normal(module)
        if name in known:
            lines.append((False, f"{module} {known[name]} is not installed here"))
    yield from (line for _, line in sorted(lines))


@functools.cache
def _asked(interpreter: str, program: str) -> Any:
    """What ``program`` prints, as JSON; None if the interpreter does not answer.

    Cached, since a suite of goldens uses one interpreter.
    """
    try:
        done = subprocess.run(
            [interpreter, "-c", program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _told(tape: Tape, name: str) -> Iterator[str]:
    of_process = (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_HEARTBEAT, e.PLAYHEAD_PROCESS_EXIT)
    facts = tape.named(*of_process) if isinstance(tape, IndexedTape) else tape.facts()
    for fact in facts:
        yield from (real_name(str(one)) for one in fact.attributes.get(name, ()))


def _start_of(tape: Tape) -> Mapping[str, Any]:
    first = next(tape.facts(), None)
    return {} if first is None else first.attributes


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
