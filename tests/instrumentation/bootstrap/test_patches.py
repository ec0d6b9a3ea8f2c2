"""Patches: applied on import, one failure stops no other, the outcome known by name."""

import importlib
import sys
import threading
import types

import pytest

from playhead_instrumentation.patches import Patches, Unpatchable, required


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "patched_sample.py").write_text("value = 1\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "patched_sample"
    sys.modules.pop("patched_sample", None)


def test_applied_on_import_and_only_once(module):
    patches = Patches()
    seen: list[types.ModuleType] = []
    patches.when_imported(module, "sample", seen.append)
    patches.when_imported(module, "sample", seen.append)
    assert (seen, patches.patched(), patches.unpatched()) == ([], [], [])
    imported = importlib.import_module(module)
    assert seen == [imported]
    assert patches.patched() == ["sample"]


def test_applied_at_once_to_what_is_imported_already(module):
    imported = importlib.import_module(module)
    patches = Patches()
    seen: list[types.ModuleType] = []
    patches.when_imported(module, "sample", seen.append)
    assert seen == [imported]


def test_a_module_that_another_thread_is_importing_is_patched_when_it_is_whole(tmp_path, monkeypatch):
    begun, go = threading.Event(), threading.Event()
    shared = types.ModuleType("patched_events")
    shared.begun, shared.go = begun, go  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "patched_events", shared)
    source = "import patched_events\npatched_events.begun.set()\npatched_events.go.wait()\nvalue = 1\n"
    (tmp_path / "patched_slow.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importing = threading.Thread(target=importlib.import_module, args=("patched_slow",))
    importing.start()
    assert begun.wait(10)
    patches = Patches()
    released = threading.Timer(0.1, go.set)
    released.start()
    patches.when_imported("patched_slow", "slow", lambda found: required(found, "value"))
    importing.join()
    sys.modules.pop("patched_slow")
    assert (patches.patched(), patches.unpatched()) == (["slow"], [])


def test_a_failure_is_named_and_does_not_reach_the_import(module):
    patches = Patches()
    told: list[tuple[str, str]] = []
    patches.on_failure = lambda name, reason: told.append((name, reason))
    patches.when_imported(module, "sample", lambda found: required(found, "Client"))
    patches.when_imported(module, "other", lambda found: setattr(found, "value", 2))
    assert importlib.import_module(module).value == 2
    assert patches.patched() == ["other"]
    assert patches.unpatched() == ["sample: no patched_sample.Client"]
    assert told == [("sample", "no patched_sample.Client")]


def test_any_exception_is_kept_with_its_name():
    patches = Patches()

    def broken() -> None:
        raise ZeroDivisionError

    def absent() -> None:
        raise Unpatchable("no such thing")

    assert not patches.attempt("a", broken)
    assert not patches.attempt("b", absent)
    assert patches.attempt("c", lambda: None)
    assert patches.unpatched() == ["a: ZeroDivisionError", "b: no such thing"]
    assert patches.patched() == ["c"]
