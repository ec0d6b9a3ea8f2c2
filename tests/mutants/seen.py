"""A pytest plugin: which lines of the sources each test executes, and how long it takes.

``pytest -p mutants.seen``; PLAYHEAD_MUTANTS_SEEN is the file that is written, PLAYHEAD_MUTANTS_SOURCES
the sources, a path a line.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_coverage = coverage.Coverage(
    data_file=None, config_file=False, include=os.environ["PLAYHEAD_MUTANTS_SOURCES"].splitlines()
)
_passed: dict[str, float] = {}
_failed: dict[str, None] = {}


def pytest_sessionstart() -> None:
    _coverage.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _coverage.switch_context(item.nodeid)
    began = time.monotonic()
    try:
        return (yield)
    finally:
        _coverage.switch_context("")
        if item.nodeid in _passed:
            _passed[item.nodeid] = time.monotonic() - began


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _passed[report.nodeid] = 0.0
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish() -> None:
    _coverage.stop()
    data = _coverage.get_data()
    numbers = {name: number for number, name in enumerate(_passed)}
    lines = {
        os.path.relpath(path): {
            line: sorted(numbers[name] for name in names if name in numbers)
            for line, names in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    found = {"tests": list(_passed.items()), "failed": list(_failed), "lines": lines}
    Path(os.environ["PLAYHEAD_MUTANTS_SEEN"]).write_text(json.dumps(found), "utf-8")
