"""List the installed libraries that playhead knows: how it records each, and what it does not record.

The knowledge is that of the recording: the boundaries with their patches, the entry points of framework
hooks in the agent's environment, and the modules whose data no tape holds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from playhead_cli.doctor import ReportLine
from playhead_cli.doctor.checks import had_with
from playhead_cli.running.agent import agent_python
from playhead_core.boundaries import BOUNDARIES, BY_NAME, Boundary, selected
from playhead_core.process.module_coverage import SEEN, UNSEEN
from playhead_core.settings import Settings

TIMEOUT_S: Final = 30
HOOKS: Final = "playhead_frameworks"
"""Entry point group of framework hooks."""

_PROBE: Final = """
import json, sys
from importlib.metadata import distribution, entry_points, packages_distributions

hooks = {one.name: one.dist.name if one.dist else "" for one in entry_points(group=sys.argv[1])}
packages, found = packages_distributions(), {}
for module in [*json.loads(sys.argv[2]), *hooks]:
    path = module.replace(".", "/")
    for name in dict.fromkeys(packages.get(module.partition(".")[0], ())):
        installed = distribution(name)
        files = (str(file) for file in installed.files or ())
        if "." not in module or any(file.startswith((path + "/", path + ".")) for file in files):
            found[module] = [installed.name, installed.version]
            break
print(json.dumps([hooks, found]))
"""
"""Reads the metadata of distributions, so that no library is imported."""


@dataclass(slots=True)
class KnownLibrary:
    """What playhead knows of a module that a program may import."""

    ways: list[str] = field(default_factory=list[str])
    """``entry point: a span for each model call``, ``wire: …``, ``hook: …``."""
    off: list[str] = field(default_factory=list[str])
    """The same for boundaries that the level or a setting leaves out, with the reason."""
    missing: str = ""
    """What playhead does not record of the library."""
    advice: str = ""

    def add(self, way: str, row: Boundary, is_on: bool) -> None:
        """Add how a boundary knows it."""
        if is_on:
            self.ways.append(way)
        else:
            self.off.append(f"{way} (off: {had_with(row)})")


class _Installed(msgspec.Struct, array_like=True):
    hooks: dict[str, str]
    """Package of the framework → distribution of the hook."""
    found: dict[str, tuple[str, str]]
    """Module → distribution and version."""


def check_libraries(python: str, settings: Settings) -> Iterator[ReportLine]:
    """Yield a line for each library in the agent's environment that playhead knows."""
    on = selected(settings.recording_level, settings.boundaries)
    known = known_libraries(on)
    try:
        done = subprocess.run(
            [agent_python(python, os.environ), "-c", _PROBE, HOOKS, json.dumps(list(known))],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        installed = msgspec.json.decode(done.stdout, type=_Installed)
    except (OSError, ValueError, subprocess.SubprocessError):
        return  # the line about the interpreter explains it
    frameworks = BY_NAME["frameworks"]
    for module, provider in installed.hooks.items():
        way = f"hook of {provider or 'an unnamed distribution'}: {frameworks.facts}"
        known.setdefault(module, KnownLibrary()).add(way, frameworks, frameworks in on)
    lines = {
        module: _line(f"{name} {version}", known[module])
        for module, (name, version) in sorted(installed.found.items(), key=lambda one: one[1][0].lower())
    }
    yield from lines.values()
    if not any(known[module].ways for module in lines):
        yield ReportLine(
            "warning",
            "no client library is installed there: only the standard library's HTTP is recorded",
            "say where the agent runs: playhead doctor --python PATH",
        )


def known_libraries(on: Sequence[Boundary]) -> dict[str, KnownLibrary]:
    """Return what playhead knows of modules outside the standard library, by module.

    ``on``: the boundaries of the recording.
    """
    known: dict[str, KnownLibrary] = {}
    for row in BOUNDARIES:
        way = _way(row)
        for module in dict.fromkeys(_package(module) for module, _ in row.on_import) if way else ():
            library = known.setdefault(module, KnownLibrary())
            library.add(way, row, row in on)
    for module, how in SEEN.items():
        known.setdefault(module, KnownLibrary(ways=[f"wire: {how}"]))
    for module, unseen in UNSEEN.items():
        library = known.setdefault(module, KnownLibrary())
        library.missing, library.advice = unseen.missing, unseen.advice
    standard = sys.stdlib_module_names | {"playhead_checkpoint"}
    return {name: one for name, one in known.items() if name.partition(".")[0] not in standard}


def _way(row: Boundary) -> str:
    """Return how a boundary knows its libraries; empty if it records none of their exchanges."""
    if any(place.startswith("libraries.model_sdks.") for _, place in row.on_import):
        return f"entry point: {row.facts}"
    kind, _, facts = row.facts.partition(": ")
    return f"wire: {facts}" if kind.startswith("exchanges") else ""


def _package(module: str) -> str:
    """Return the package that a program imports: ``google.genai`` of the namespace ``google``."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "google" else parts[0]


def _line(name: str, library: KnownLibrary) -> ReportLine:
    said = [*library.ways, *library.off]
    if library.missing:
        said.append(f"not recorded: {library.missing}")
    mark = "warning" if library.missing else "good" if library.ways else "off"
    return ReportLine(mark, f"{name}, {'; '.join(said)}", library.advice)
