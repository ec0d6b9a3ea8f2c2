"""Functions of C in whose place something else is called: what asks for their type, finds the same.

``type(open)``, `inspect.signature`, `pickle`, `copy` and `help` look at what only a builtin function
has. So one is made: of C's own `PyObject_Call`, bound to an object that calls ours. No code of Python,
and none of ctypes, runs on the way. Where that cannot be done (another interpreter than CPython), ours
stands there itself.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final

log = logging.getLogger(__name__)

_VARARGS_KEYWORDS: Final = 0x1 | 0x2


_kept: Final[list[object]] = []
"""Definitions: as long as their functions, which may be as long as the process."""


def genuine(original: Any, ours: Any) -> Any:
    """A builtin function like ``original`` that calls ``ours``; ``ours``, where that cannot be made."""
    if type(original) is not BuiltinFunctionType or sys.implementation.name != "cpython":
        return ours
    of = getattr(original, "__self__", None)
    if of is not None and not isinstance(of, ModuleType):
        return ours  # the method of an object
    try:
        return _made(original, ours)
    except Exception:
        log.debug("playhead could not make a builtin function", exc_info=True)
        return ours


def behind(function: Any) -> Any:
    """What a function calls that is `genuine`; any other object is what it is."""
    if type(function) is not BuiltinFunctionType:
        return function
    bound: Any = function.__self__
    return bound.__dict__["behind"] if isinstance(bound, _Bound) else function


class Behind(type):
    """Of a class whose instances stand behind functions: those count as instances too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, behind(instance))


class _Bound(ModuleType):
    """What the function is bound to: a module, as it is for functions of C."""


def _made(original: Any, ours: Any) -> Any:
    name: str = original.__name__
    kind: Any = type(ModuleType.__name__, (_Bound,), {"__call__": staticmethod(ours)})
    bound = kind(getattr(original.__self__, "__name__", name))
    bound.__dict__["behind"] = ours
    return _maker()(name.encode(), _doc_of(original), bound, original.__module__)


@functools.cache
def _maker() -> Callable[[bytes, bytes | None, ModuleType, str | None], Any]:
    """Makes a builtin function: name, text, what it is bound to and calls, module."""
    import ctypes

    class Definition(ctypes.Structure):
        """`PyMethodDef`."""

        _fields_ = (
            ("name", ctypes.c_char_p),
            ("function", ctypes.c_void_p),
            ("flags", ctypes.c_int),
            ("doc", ctypes.c_char_p),
        )

    call = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
    new = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.POINTER(Definition), ctypes.py_object, ctypes.py_object
    )(("PyCFunction_NewEx", ctypes.pythonapi))

    def make(name: bytes, doc: bytes | None, bound: ModuleType, module: str | None) -> Any:
        definition = Definition(name, call, _VARARGS_KEYWORDS, doc)
        function = new(ctypes.byref(definition), bound, module)
        _kept.append(definition)
        return function

    return make


def _doc_of(original: Any) -> bytes | None:
    """As it stands in C: the signature before the text."""
    doc, signature = original.__doc__, original.__text_signature__
    if signature is not None:
        doc = f"{original.__name__}{signature}\n--\n\n{doc or ''}"
    return None if doc is None else doc.encode()
