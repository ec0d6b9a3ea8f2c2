"""Snapshot of the attributes of the standard library, for comparison before and after a change.

It is copied beside programs that import it, so it needs only the standard library.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import io
import random
import sys
import types
import warnings
from typing import Any

UNUSED = frozenset(
    "__main__ _pyrepl antigravity idlelib lib2to3 nturl2path pdb pip site sitecustomize test this "
    "tkinter turtle turtledemo".split()
)
"""Modules that have effects when they are imported, or that no program uses."""

WORTH = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    classmethod,
    staticmethod,
    property,
    io.IOBase,
)


def import_all(more: tuple[str, ...] = ()) -> None:
    """Import the standard library, and also the submodules named in ``more``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*sorted(sys.stdlib_module_names), *more):
            if name.partition(".")[0] not in UNUSED:
                try:
                    importlib.import_module(name)
                except Exception:
                    continue  # for another system, or removed from this interpreter
    for name in concurrent.futures.__all__:
        getattr(concurrent.futures, name)  # some are loaded on access


def snapshot(before: dict[str, Any] | None = None) -> dict[str, Any]:
    """The values of attributes of modules, classes and a few objects, by name.

    ``before``: an earlier snapshot; only modules and classes that it contains are examined.
    """
    found: dict[str, Any] = {}
    known = None if before is None else {id(one) for one in before.values()}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in sys.stdlib_module_names - UNUSED:
            continue
        if not isinstance(module, types.ModuleType) or (before is not None and name not in before):
            continue
        found[name] = module
        for own, value in list(vars(module).items()):
            found[f"{name}.{own}"] = value
            if not isinstance(value, type) or (known is not None and id(value) not in known):
                continue
            if value.__module__.partition(".")[0] in sys.stdlib_module_names:
                place = f"{value.__module__}.{value.__qualname__}"
                found |= {f"{place}.{own}": one for own, one in vars(value).items()}
    holders: dict[str, Any] = {"random._inst": random._inst}  # pyright: ignore[reportPrivateUsage]
    holders |= {f"sys.{name}": getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    for place, holder in holders.items():
        for own in ("write", "flush", "isatty", "random", "getrandbits"):
            found[f"{place}.{own}"] = getattr(holder, "__dict__", {}).get(own)
    return found


def replaced(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of functions, classes and modules that have been replaced or added."""
    found: list[str] = []
    for name, value in after.items():
        old = before.get(name)
        if value is old or name.rpartition(".")[2] in ("__abstractmethods__", "_abc_impl"):
            continue
        if name not in before and isinstance(value, types.ModuleType):
            continue  # imported since then
        if isinstance(value, WORTH) or isinstance(old, WORTH) or callable(value) or callable(old):
            found.append(name)
    return sorted(found)


def there(before: dict[str, Any], target: str) -> bool:
    """Whether this interpreter has the attribute ``target``, possibly of a base class."""
    if target in before:
        return True
    owner, _, name = target.rpartition(".")
    return owner in before and hasattr(before[owner], name)
