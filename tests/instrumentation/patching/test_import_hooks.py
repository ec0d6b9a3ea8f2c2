"""Functions that are called when a module is imported, while other threads import it."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.starting.running import until

from playhead_instrumentation.patching.patches import call_when_imported

NAME = "hooked_sample"
PATIENCE_S = 60


class Looking:
    """A finder that holds a thread which looks for the module."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        self.begun.set()
        self.go.wait(PATIENCE_S)
        return PathFinder.find_spec(name, path, target)


@pytest.fixture
def looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looking]:
    (tmp_path / f"{NAME}.py").write_text("value = 1\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = Looking()
    call_when_imported("a_module_that_nobody_imports", print)  # wrapt's finder comes before ours
    position = next(
        number for number, one in enumerate(sys.meta_path) if type(one).__name__ == "ImportHookFinder"
    )
    monkeypatch.setattr(
        sys, "meta_path", [*sys.meta_path[: position + 1], finder, *sys.meta_path[position + 1 :]]
    )
    yield finder
    finder.go.set()
    sys.modules.pop(NAME, None)


def test_an_import_that_began_before_the_hook_is_heard(looking: Looking):
    importing = threading.Thread(target=importlib.import_module, args=(NAME,))
    importing.start()
    assert looking.begun.wait(PATIENCE_S)
    seen: list[ModuleType] = []
    hooking = threading.Thread(target=call_when_imported, args=(NAME, seen.append))
    hooking.start()
    until(lambda: NAME in sys.modules["wrapt.importer"]._post_import_hooks, "no hook was set")
    looking.go.set()
    importing.join(PATIENCE_S)
    hooking.join(PATIENCE_S)
    assert seen == [sys.modules[NAME]]


def test_a_module_that_is_not_there_is_waited_for_by_nobody():
    call_when_imported("a_module_that_does_not_exist", print)
    assert "a_module_that_does_not_exist" not in sys.modules
