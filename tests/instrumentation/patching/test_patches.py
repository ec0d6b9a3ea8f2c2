"""Patches: applied on import, one failure stops no other, the outcome known by name."""

import asyncio
import gc
import importlib
import inspect
import pickle
import sys
import threading
import types
import weakref
from typing import Any

import pytest

from playhead_instrumentation.patching import layers
from playhead_instrumentation.patching.layers import ErrorInstead
from playhead_instrumentation.patching.patches import Patches, Unpatchable, calling, required


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
    assert begun.wait(60)
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


class Owner:
    def method(self, value: int) -> int:
        if value < 0:
            raise ValueError(value)
        return value + 1

    async def slow(self, value: int) -> int:
        return self.method(value)


def patched(monkeypatch, layer, name="method", patches=None):
    monkeypatch.setattr(Owner, name, getattr(Owner, name))  # back to it afterwards
    patches = patches or Patches()
    patches.around(Owner, name, layer)
    return patches


def test_layers_are_called_in_their_order_each_once(monkeypatch):
    seen: list[str] = []

    def layer(said):
        def passing(method, owner, value):
            seen.append(said)
            return method(owner, value)

        return passing

    patches, twice = Patches(), layer("middle")
    for one, order in ((layer("inner"), 30), (twice, 20), (layer("outer"), 10), (twice, 20)):
        monkeypatch.setattr(Owner, "method", Owner.method)
        patches.around(Owner, "method", one, order=order)
    assert Owner().method(1) == 2
    assert seen == ["outer", "middle", "inner"]


def test_a_layer_that_fails_is_passed_by(monkeypatch):
    calls: list[int] = []

    def before(method, owner, value):
        raise ZeroDivisionError

    def after(method, owner, value):
        calls.append(method(owner, value))
        raise ZeroDivisionError

    def wrong():
        """Another signature than the target's."""

    for layer in (before, after, wrong):
        patches = patched(monkeypatch, layer)
        assert Owner().method(1) == 2
        with pytest.raises(ValueError, match="-1"):
            Owner().method(-1)
        patches.undo()
    assert calls == [2]


def test_what_the_original_raises_is_raised_also_where_a_layer_fails_then(monkeypatch):
    def layer(method, owner, value):
        try:
            return method(owner, value)
        except ValueError:
            raise ZeroDivisionError from None

    patched(monkeypatch, layer)
    with pytest.raises(ValueError, match="-1"):
        Owner().method(-1)


def test_the_same_of_coroutine_functions(monkeypatch):
    async def layer(slow, owner, value):
        await slow(owner, value)
        raise ZeroDivisionError

    patched(monkeypatch, layer, "slow")
    assert inspect.iscoroutinefunction(Owner.slow)
    assert asyncio.run(Owner().slow(1)) == 2
    with pytest.raises(ValueError, match="-1"):
        asyncio.run(Owner().slow(-1))


def test_an_outcome_is_what_the_program_gets(monkeypatch):
    def layer(method, owner, value):
        raise ErrorInstead(KeyError("known"))

    patched(monkeypatch, layer)
    with pytest.raises(KeyError, match="known"):
        Owner().method(1)


def test_a_replay_passes_nothing_by(monkeypatch):
    def layer(method, owner, value):
        raise ZeroDivisionError

    patched(monkeypatch, layer).forgiving = False
    with pytest.raises(ZeroDivisionError):
        Owner().method(1)


def test_errors_leave_nothing_for_the_collector(monkeypatch):
    class Held(ValueError):
        pass

    def method(self, value):
        raise Held

    def layer(method, owner, value):
        try:
            return method(owner, value)
        except Held:
            raise ZeroDivisionError from None

    monkeypatch.setattr(Owner, "method", method)
    Patches().around(Owner, "method", layer)
    gc.disable()
    try:
        try:
            Owner().method(1)
        except Held as error:
            gone = weakref.ref(error)
        assert gone() is None
    finally:
        gc.enable()


def test_told_where_a_layer_lapses(monkeypatch):
    told: list[str] = []

    def layer(method, owner, value):
        raise ZeroDivisionError

    monkeypatch.setattr(Owner, "method", Owner.method)
    Patches().around(Owner, "method", layer, lapse=lambda: told.append("lapsed"))
    assert (Owner().method(1), told) == (2, ["lapsed"])


def test_undo_takes_off_what_is_outermost_and_lets_the_rest_pass(monkeypatch):
    seen: list[int] = []

    def layer(method, owner, value):
        seen.append(value)
        return method(owner, value)

    original = Owner.method
    patches = patched(monkeypatch, layer)
    patches.put(Owner, "more", 1)
    patches.undo()
    assert (Owner.method, hasattr(Owner, "more")) == (original, False)

    patches = patched(monkeypatch, layer)
    ours = Owner.method
    monkeypatch.setattr(Owner, "method", lambda self, value: ours(self, value))
    assert (Owner().method(1), seen) == (2, [1])
    patches.undo()
    assert (Owner().method(1), seen) == (2, [1])


def test_a_patch_that_was_undone_is_not_applied_on_import(module):
    patches = Patches()
    seen: list[types.ModuleType] = []
    patches.when_imported(module, "sample", seen.append)
    patches.undo()
    importlib.import_module(module)
    assert seen == []


def test_functions_of_c_stay_what_they_are(monkeypatch):
    original = sys.exit
    monkeypatch.setattr(sys, "exit", original)  # back to it afterwards

    def layer(leave, status):
        leave(status)

    Patches().around(sys, "exit", layer)
    ours: Any = sys.exit

    class Command:
        leave = ours  # no method, as sys.exit is none

    with pytest.raises(SystemExit) as left:
        Command().leave(3)
    assert left.value.code == 3
    assert ours is not original
    assert (repr(ours), pickle.loads(pickle.dumps(ours))) == (repr(original), ours)
    assert inspect.signature(ours) == inspect.signature(original)


def test_who_calls_the_target_of_a_layer(monkeypatch):
    def layer(method, owner, value):
        found = calling()
        assert found is not None
        return found.f_code.co_name

    patched(monkeypatch, layer)
    assert Owner().method(1) == "test_who_calls_the_target_of_a_layer"


def test_where_the_interpreter_has_cleared_the_modules_the_original_is_called(monkeypatch):
    """`Popen.__del__` runs that late, and an error there is printed."""
    monkeypatch.setattr(layers, "FollowingCall", None)
    assert layers.guarded(Patches(), lambda call: call() + 1, lambda: 3) == 3
