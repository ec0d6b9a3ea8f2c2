"""Modules that are imported ahead and hidden until the program imports them.

A module that was imported ahead is removed from ``sys.modules``. When the program imports it, it is
restored with all modules that it imports itself. Until then it is absent, as in a fresh process.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import os
import random
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.ambient import entropy
from playhead_instrumentation.patching.attribution.owners import in_packages, installed

_HOOKS: Final = "wrapt.importer"


class WithheldModules:
    """A module finder. It calls ``part``, which does not return, where it cannot restore a module."""

    def __init__(self, part: Callable[[], None]) -> None:
        self._part = part
        self._there = set(sys.modules)
        """Names of the modules with which every replay begins."""
        self._modules: dict[str, Any] = {}
        """Hidden modules in the order in which their imports began."""
        self._uses: dict[str, set[str]] = {}
        """Names of the modules that each module has imported."""
        self._draws: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}
        """Draws of each module from the shared random generator during its import."""
        self._environ = dict(os.environ)
        self._path = list(sys.path)
        # After wrapt's finder, which calls import hooks of the program.
        sys.meta_path.insert(1, self)

    def news(self) -> list[str]:
        """Names of installed modules that were imported and are not hidden."""
        found = [name for name in sys.modules if name not in self._there and name not in self._modules]
        return [name for name in found if _is_installed(name)]

    @contextmanager
    def importing(self) -> Generator[Callable[[str], object]]:
        """Context: modules that are imported inside with the given function are hidden afterwards.

        Raises `ValueError` at its end if one of these modules is the program's own.
        """
        before = set(sys.modules)
        for name, module in self._modules.items():
            _put(name, module, self._modules)
        statement, by_name = builtins.__import__, importlib.import_module
        builtins.__import__ = self._heeding(statement, _of_statement)
        importlib.import_module = heeded = self._heeding(by_name, _of_name)
        entropy.on_draw = self._drawn
        try:
            yield by_name
        finally:
            builtins.__import__, importlib.import_module = statement, by_name
            entropy.on_draw = None
            kept = [name for name in sys.modules if name not in before and _is_installed(name)]
            for name in kept:
                _put_back(sys.modules[name], heeded, by_name)
            for name in kept:
                self._take(name)
            left = set(sys.modules) - before
            self._there |= left
            own = [name for name in left if (lies := _place(sys.modules[name])) and not installed(lies)]
            if own:
                raise ValueError(f"{own[0]} is the program's own")

    def _heeding(self, original: Any, named: Callable[..., tuple[str, Sequence[str]]]) -> Any:
        """Wrap an import function so that it notes the importer of each module."""

        @functools.wraps(original)
        def heeded(*args: Any, **kwargs: Any) -> Any:
            count = len(sys.modules)
            found = original(*args, **kwargs)
            importer = sys._getframe(1).f_globals  # pyright: ignore[reportPrivateUsage]
            uses = self._uses.setdefault(str(importer.get("__name__", "")), set())
            absolute, items = named(importer, *args, **kwargs)
            uses.add(absolute)
            uses.update(name for item in items if (name := f"{absolute}.{item}") in sys.modules)
            if len(sys.modules) > count:
                uses.update(list(sys.modules)[count:])
            return found

        return heeded

    def _drawn(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Note a draw by the module that is being imported."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
        self._draws.setdefault(module, []).append((name, arguments))

    def _take(self, name: str) -> None:
        module = self._modules[name] = sys.modules.pop(name)
        parent, _, last = name.rpartition(".")
        package = self._modules.get(parent, sys.modules.get(parent))
        if getattr(package, "__dict__", {}).get(last) is module:
            delattr(package, last)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a hidden module. Restores the modules that it imports."""
        if name not in self._modules:
            return None
        wanted = self._with_all_it_uses(name)
        if not self._as_before(wanted):
            self._part()
        given = {one: module for one, module in self._modules.items() if one in wanted}
        for one, module in given.items():
            del self._modules[one]
            if one != name:
                _put(one, module, given)
            for drawing, arguments in self._draws.get(one, ()):
                getattr(random, drawing)(*arguments)
        module = given[name]
        return ModuleSpec(name, _Given(module), is_package=hasattr(module, "__path__"))

    def _with_all_it_uses(self, name: str) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            one = left.pop()
            if one in self._modules and one not in found:
                found.add(one)
                left += [one.rpartition(".")[0], *self._uses.get(one, ())]
        return found

    def _as_before(self, wanted: Iterable[str]) -> bool:
        """Whether importing these would have the same effect now, and no import hook waits for one."""
        hooks: Any = getattr(sys.modules.get(_HOOKS), "_post_import_hooks", {})
        if self._environ != dict(os.environ) or any(name in hooks for name in wanted):
            return False
        others = [one for one in sys.path if one not in self._path or not installed(one + os.sep)]
        tops = {name.partition(".")[0] for name in wanted}
        return not any(PathFinder.find_spec(top, others) for top in tops)


class _Given(Loader):
    """A loader for a module that is already loaded."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__
        self._loader = getattr(module, "__loader__", None)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The loaded module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's original specification and loader."""
        module.__spec__ = self._spec
        module.__loader__ = self._loader


def _put(name: str, module: Any, together_with: Mapping[str, Any]) -> None:
    """Put a module into ``sys.modules`` and on its package, which may be in ``together_with``."""
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    package = together_with.get(parent, sys.modules.get(parent))
    if package is not None and last not in getattr(package, "__dict__", {last: module}):
        setattr(package, last, module)


def _put_back(module: Any, ours: Any, original: Any) -> None:
    """Replace ``ours`` by ``original`` where a module holds it."""
    for name, value in list(getattr(module, "__dict__", {}).items()):
        if value is ours:
            setattr(module, name, original)


def _place(module: Any) -> str:
    """The path of a module; empty where it has none."""
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    return next((place for place in places if isinstance(place, str)), "")


def _is_installed(name: str) -> bool:
    """Whether a module, or its top package, is installed."""
    modules = sys.modules[name], sys.modules.get(name.partition(".")[0])
    return any(in_packages(_place(module)) for module in modules)


def _of_statement(
    importer: dict[str, Any],
    name: str,
    globals: Any = None,
    locals: Any = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> tuple[str, Sequence[str]]:
    """The module that an import statement names, and the names that it imports from it."""
    if level:
        spec = importer.get("__spec__")
        package = importer.get("__package__") or getattr(spec, "parent", "")
        name = importlib.util.resolve_name("." * level + name, package)
    return name, fromlist or ()


def _of_name(
    importer: dict[str, Any], name: str, package: str | None = None
) -> tuple[str, Sequence[str]]:
    """The same for `importlib.import_module`."""
    return importlib.util.resolve_name(name, package), ()
