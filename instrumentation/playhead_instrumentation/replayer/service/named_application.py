"""Finds the application that a tape names, without evaluating the name.

A tape may come from anywhere. It may name what the program itself offers to a server, and nothing else:
no module of the standard library is imported, no function of it or of a library is called, and a call of
a marked function reaches a marked function only.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
from types import ModuleType
from typing import Any, Final, cast

from playhead_core.errors import ReplayFailed
from playhead_instrumentation.libraries.inbound.applications import MAIN
from playhead_instrumentation.libraries.inbound.marked_run import is_marked
from playhead_instrumentation.patching.attribution.owners import Owner, owner_of
from playhead_instrumentation.patching.plain_classes import is_of_program

MOST_CHARS: Final = 200
"""Characters shown of what a tape names."""

_MISSING: Final = object()


def require_importable(module: str) -> None:
    """`ReplayFailed` for a module that a tape may not have imported."""
    if not _is_importable(module):
        raise _refused(module, "it is not a module of the program")


def application_at(module: ModuleType, path: str, *, marked: bool) -> Any:
    """The object at ``path`` in ``module``: names with dots, and calls with plain arguments.

    ``marked``: a function marked with `playhead.run`. `ReplayFailed` if there is no such object, or if
    a tape may not name it.
    """
    try:
        node = ast.parse(path, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _refused(path, "it is not a dotted name") from None
    found = _at(node, module)
    if marked and not is_marked(inspect.unwrap(found, stop=is_marked)):
        raise _refused(path, "it is not marked with playhead.run")
    if _is_of_others(found):
        raise _refused(path, "it is not of the program")
    return found


def _at(node: ast.expr, module: ModuleType) -> Any:
    match node:
        case ast.Name(id=name) if not name.startswith("__"):
            found = vars(module).get(name, _MISSING)
        case ast.Attribute(value=inner, attr=name) if not name.startswith("__"):
            found = getattr(_at(inner, module), name, _MISSING)
        case ast.Call(func=inner, args=args, keywords=keywords):
            factory = _at(inner, module)
            if not _is_factory(factory, module) or not all(one.arg for one in keywords):
                raise _refused(ast.unparse(node), "it calls a function that is not of the program")
            try:
                plain = [ast.literal_eval(one) for one in args]
                named = {one.arg: ast.literal_eval(one.value) for one in keywords if one.arg}
            except ValueError:
                raise _refused(ast.unparse(node), "its arguments are not plain values") from None
            return factory(*plain, **named)
        case _:
            raise _refused(ast.unparse(node), "it is not a dotted name")
    if found is _MISSING:
        raise ReplayFailed(f"{module.__name__} has no {ast.unparse(node)}: the application is not there")
    return found


def _is_factory(found: Any, module: ModuleType) -> bool:
    """Whether a tape may have it called: a function or class of the program, or of the named package."""
    if not inspect.isroutine(found) and not isinstance(found, type):
        return False
    home, top = str(getattr(found, "__module__", "")), module.__name__.partition(".")[0]
    return is_of_program(home) or home.partition(".")[0] == top


def _is_of_others(found: Any) -> bool:
    """Whether it is a function or class of the standard library, or ours, under its own name."""
    while isinstance(found, functools.partial):
        found = cast("Any", found).func
    name = getattr(found, "__qualname__", "")
    if not name or "<locals>" in name:  # an object, or what a library made for the program
        return False
    return not _is_importable(str(getattr(found, "__module__", None) or "builtins"))


def _is_importable(module: str) -> bool:
    if module == MAIN:
        return True
    if not all(name.isidentifier() for name in module.split(".")):
        return False
    try:
        found = importlib.util.find_spec(module.partition(".")[0])  # imports nothing
    except ValueError:  # a module that was made without a finder, as the main one under another name
        return True
    origin = "" if found is None else found.origin or ""
    if origin in ("built-in", "frozen"):
        return False
    return owner_of(origin) not in (Owner.STANDARD, Owner.OURS)


def _refused(named: str, why: str) -> ReplayFailed:
    return ReplayFailed(
        f"the tape names no application of the program: {named[:MOST_CHARS]}",
        cause=why,
        hint="make it an attribute of a module: app = create_app()",
    )
