"""Check that the installed model SDKs have the functions that a recording patches."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator

import msgspec

from playhead_cli.doctor import ReportLine
from playhead_cli.running.agent import agent_python
from playhead_core.boundaries import BOUNDARIES, Boundary

TIMEOUT_S = 20

_PROBE = """
import ast, json, sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

def names(module):
    for folder in sys.path:
        path = Path(folder or ".", *module.split(".")).with_suffix(".py")
        if path.is_file():
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            found = set()
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.ClassDef):
                    methods = [one.name for one in node.body if isinstance(one, functions)]
                    found |= {f"{node.name}.{name}" for name in methods}
                elif isinstance(node, functions):
                    found.add(node.name)
            return found
    return None

moved = {}
for row, modules in json.loads(sys.argv[1]).items():
    try:
        there = version(row)
    except PackageNotFoundError:
        continue
    known = {module: names(module) for module in modules}
    found = {module: one for module, one in known.items() if one is not None}
    lacking = [
        f"{module}.{name}"
        for module in (found or modules)
        for name in modules[module]
        if name not in found.get(module, ())
    ]
    if lacking:
        moved[row] = [there, lacking[0]]
print(json.dumps(moved))
"""
"""Reads the sources, so that no SDK is imported."""


def check_funnels(python: str) -> Iterator[ReportLine]:
    """Yield a line for each SDK that lacks the functions that playhead patches."""
    rows = {row.name: _targets(row) for row in BOUNDARIES if row.name in _CLIENTS}
    try:
        done = subprocess.run(
            [agent_python(python, os.environ), "-c", _PROBE, json.dumps(rows)],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        moved = msgspec.json.decode(done.stdout, type=dict[str, tuple[str, str]])
    except (OSError, ValueError, subprocess.SubprocessError):
        return  # the line about the interpreter explains it
    for name, (there, lacking) in moved.items():
        yield ReportLine(
            "warning",
            f"{name} {there} has no {lacking}: calls through it get no span of their own; their bytes "
            "are recorded all the same, and the receiver reads from them what was asked and answered",
            "look for a newer playhead-agent",
        )


_CLIENTS = frozenset(
    row.name
    for row in BOUNDARIES
    if any(place.startswith("libraries.model_sdks.") for _, place in row.on_import)
)


def _targets(row: Boundary) -> dict[str, list[str]]:
    """Return the modules of a row, and the functions that it patches in each."""
    return {
        module: [one[len(module) + 1 :] for one in row.targets if one.startswith(f"{module}.")]
        for module, _ in row.on_import
    }
