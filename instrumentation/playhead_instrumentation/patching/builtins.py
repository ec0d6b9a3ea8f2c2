"""Replacements for C functions that have the type of the original.

``type(open)``, `inspect.signature`, `pickle`, `copy` and `help` look at attributes that only builtin
functions have, and libraries branch on them. A Python function in place of a builtin would change what
the program does. So a builtin function is made from the C function `PyObject_Call`, bound to an object
that calls ours. No Python code and no ctypes code runs in between. Where this is not possible (another
interpreter than CPython), our function is used directly.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final

from playhead_core.process.own_messages import Log

log = Log(__name__)

_VARARGS_KEYWORDS: Final = 0x1 | 0x2


_kept: Final[list[object]] = []
"""Definitions of the functions; they must live as long as these, possibly as long as the process."""


def genuine(original: Any, ours: Any) -> Any:
    """A builtin function like ``original`` that calls ``ours``; ``ours`` where none can be made."""
    if type(original) is not BuiltinFunctionType or sys.implementation.name != "cpython":
        return ours
    of = getattr(original, "__self__", None)
    if of is not None and not isinstance(of, ModuleType):
        return ours  # a method of an object
    try:
        return _made(original, ours)
    except Exception:
        log.debug("playhead could not make a builtin function", exc_info=True)
        return ours


def behind(function: Any) -> Any:
    """The object that a function made by `genuine` calls; any other object unchanged."""
    if type(function) is not BuiltinFunctionType:
        return function
    bound: Any = function.__self__
    return bound.__dict__["behind"] if isinstance(bound, _Bound) else function


class Behind(type):
    """Metaclass: functions that call an instance of the class count as instances too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, behind(instance))


class _Bound(ModuleType):
    """The object to which the function is bound: a module, as for other C functions."""


def _made(original: Any, ours: Any) -> Any:
    name: str = original.__name__
    kind: Any = type(ModuleType.__name__, (_Bound,), {"__call__": staticmethod(ours)})
    bound = kind(getattr(original.__self__, "__name__", name))
    bound.__dict__["behind"] = ours
    return _maker()(name.encode(), _doc_of(original), bound, original.__module__)


@functools.cache
def _maker() -> Callable[[bytes, bytes | None, ModuleType, str | None], Any]:
    """A maker of builtin functions. Its arguments: name, docstring, bound object to call, module."""
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
    """The docstring in the form of C: the signature before the text."""
    doc, signature = original.__doc__, original.__text_signature__
    if signature is not None:
        doc = f"{original.__name__}{signature}\n--\n\n{doc or ''}"
    return None if doc is None else doc.encode()
