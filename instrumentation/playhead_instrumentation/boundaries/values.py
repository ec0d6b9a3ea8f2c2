"""Python values as JSON text, and back: equal, and of the same type.

What JSON has no form for is an object with one key ``$type``: ``{"$type": "bytes", "value": "aGk="}``.
Objects of the program's own classes are kept as class and state and made again without calling their
constructor. Nothing is pickled: a tape names classes, and of a class only ``__new__`` and
``__setstate__`` are called. What cannot be kept so is `Unkept`: open files, connections, functions,
generators, classes inside functions, objects that say themselves how they are pickled, cycles.
"""

from __future__ import annotations

import base64
import collections
import copyreg
import datetime as dt
import enum
import importlib
import io
import ipaddress
import json
import math
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from time import struct_time
from typing import Any, Final, cast

TYPE: Final = "$type"
"""The key that marks what is no plain JSON."""

DEEPEST: Final = 200
"""Levels of nesting."""


class Unkept(Exception):
    """A value that cannot be kept on a tape; the text is the name of its class."""


def written(value: Any, *, stubs: list[str] | None = None) -> bytes:
    """``value`` as JSON text; the same bytes for equal values. `Unkept` if that is not possible.

    With ``stubs`` nothing is raised: what cannot be kept is written as the name of its class, which is
    added to the list.
    """
    text = _dumped(_Writer(stubs, ordered=True).of(value))
    return text.encode("utf-8", "surrogatepass")


def kept(value: Any) -> bytes:
    """``value`` as JSON text of which `read` makes it again. `Unkept` if that is not possible."""
    writer = _Writer(None)
    data = _dumped(writer.of(value)).encode("utf-8", "surrogatepass")
    if writer.classes:
        # What a class makes of its state is its own affair: see whether it comes back the same.
        try:
            again = written(read(data))
        except Exception as problem:
            raise Unkept(writer.classes[0]) from problem
        if again != written(value):
            raise Unkept(writer.classes[0])
    return data


def read(data: bytes) -> Any:
    """The value that was `kept`. `Unkept` for one that was not, ImportError for a class that is gone."""
    return _made(json.loads(data.decode("utf-8", "surrogatepass")))


def name_of(cls: type) -> str:
    """Module and qualified name of a class; of a builtin one the name."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _dumped(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _text(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode()


class _Writer:
    """Makes plain JSON of one value."""

    def __init__(self, stubs: list[str] | None, *, ordered: bool = False) -> None:
        """``ordered``: sets are written in an order of their own, not in that of their iteration."""
        self.classes: list[str] = []
        """Classes outside the standard library that were met."""
        self._stubs = stubs
        self._ordered = ordered
        self._above: list[int] = []

    def of(self, value: Any) -> Any:
        cls = cast("type[Any]", type(value))
        if value is None or cls is str or cls is bool:
            return value
        if cls is int:
            # Longer ones Python does not write in digits.
            return value if abs(value) < 1 << 1024 else {TYPE: "int", "value": hex(value)}
        if cls is float:
            return value if math.isfinite(value) else {TYPE: "float", "value": repr(value)}
        if id(value) in self._above or len(self._above) > DEEPEST:
            return self._unkept(cls)
        self._above.append(id(value))
        try:
            return self._compound(value, cls)
        except Unkept:
            if self._stubs is None:
                raise
            return self._unkept(cls)
        finally:
            self._above.pop()

    def _compound(self, value: Any, cls: type[Any]) -> Any:
        if cls is list:
            return [self.of(one) for one in value]
        if cls is dict:
            if TYPE not in value and all(type(key) is str for key in value):
                return {key: self.of(one) for key, one in value.items()}
            return {TYPE: "dict", "value": [[self.of(key), self.of(one)] for key, one in value.items()]}
        if cls is set or cls is frozenset:
            items = [self.of(one) for one in value]
            return {TYPE: cls.__name__, "value": sorted(items, key=_dumped) if self._ordered else items}
        taken = _TAKEN.get(cls)
        if taken is not None:
            return {TYPE: name_of(cls), "value": self.of(taken(value))}
        if isinstance(value, BaseException):
            return self._exception(value, cls)
        if isinstance(value, enum.Enum):
            return self._of_class("enum", cls, value.value)
        if isinstance(value, tuple) and hasattr(cls, "_fields"):
            return self._of_class("tuple", cls, list(cast("tuple[Any, ...]", value)))
        if isinstance(value, type):
            return self._of_class("class", value, None)
        if cls.__module__.partition(".")[0] == "numpy":
            return self._of_numpy(value, cls)
        return self._object(value, cls)

    def _of_class(self, form: str, cls: type, value: Any) -> Any:
        if _found(cls.__module__, cls.__qualname__) is not cls:
            raise Unkept(name_of(cls))
        if cls.__module__ not in sys.stdlib_module_names:
            self.classes.append(name_of(cls))
        return {TYPE: form, "class": [cls.__module__, cls.__qualname__], "value": self.of(value)}

    def _exception(self, error: BaseException, cls: type[Any]) -> Any:
        made: Any = _base_of(cls).__reduce__(error)
        state = (made[2] or None) if len(made) > 2 else None
        shown = [list(made[1]), state, error.__cause__, error.__suppress_context__]
        return self._of_class("exception", cls, shown)

    def _of_numpy(self, value: Any, cls: type) -> Any:
        numpy = sys.modules["numpy"]
        if isinstance(value, numpy.generic | numpy.ndarray) and cls.__name__ != "matrix":
            if not value.dtype.hasobject:
                file = io.BytesIO()
                numpy.save(file, value, allow_pickle=False)
                form = "array" if cls is numpy.ndarray else "scalar"
                return {TYPE: f"numpy.{form}", "value": _text(file.getvalue())}
        return self._object(value, cls)

    def _object(self, value: Any, cls: type[Any]) -> Any:
        own = cls.__reduce_ex__ is not object.__reduce_ex__ or cls.__reduce__ is not object.__reduce__
        if own or hasattr(cls, "__del__"):
            raise Unkept(name_of(cls))
        try:
            reduced: Any = value.__reduce_ex__(2)
        except Exception as problem:
            raise Unkept(name_of(cls)) from problem
        padded: Any = (*reduced, None, None, None)
        function, arguments, state, items, pairs = padded[:5]
        if function is not getattr(copyreg, "__newobj__") or arguments[0] is not cls:  # noqa: B009
            raise Unkept(name_of(cls))
        shown: list[Any] = [list(arguments[1:]), state]
        if items is not None or pairs is not None:
            shown += [None if items is None else list(items), None if pairs is None else list(pairs)]
        return self._of_class("object", cls, shown)

    def _unkept(self, cls: type) -> Any:
        if self._stubs is None:
            raise Unkept(name_of(cls))
        self._stubs.append(name_of(cls))
        return {TYPE: "unkept", "value": name_of(cls)}


_NAIVE: Final = dt.datetime.isoformat

_TAKEN: Final[dict[type[Any], Callable[[Any], Any]]] = {
    tuple: list,
    bytes: _text,
    bytearray: _text,
    complex: lambda one: [one.real, one.imag],
    range: lambda one: [one.start, one.stop, one.step],
    slice: lambda one: [one.start, one.stop, one.step],
    dt.datetime: lambda one: [_NAIVE(one.replace(tzinfo=None)), one.fold, one.tzinfo],
    dt.time: lambda one: [one.replace(tzinfo=None).isoformat(), one.fold, one.tzinfo],
    dt.date: lambda one: one.isoformat(),
    dt.timedelta: lambda one: [one.days, one.seconds, one.microseconds],
    dt.timezone: lambda one: list(one.__getinitargs__()),
    zoneinfo.ZoneInfo: lambda one: one.key,
    struct_time: lambda one: list(one.__reduce__()[1]),
    Decimal: str,
    Fraction: lambda one: [one.numerator, one.denominator],
    uuid.UUID: str,
    re.Pattern: lambda one: [one.pattern, one.flags],
    collections.OrderedDict: lambda one: list(one.items()),
    collections.Counter: lambda one: dict(one),
    collections.defaultdict: lambda one: [one.default_factory, list(one.items())],
    collections.deque: lambda one: [list(one), one.maxlen],
    pathlib.PosixPath: str,
    pathlib.WindowsPath: str,
    pathlib.PurePosixPath: str,
    pathlib.PureWindowsPath: str,
    ipaddress.IPv4Address: str,
    ipaddress.IPv6Address: str,
    ipaddress.IPv4Network: str,
    ipaddress.IPv6Network: str,
    ipaddress.IPv4Interface: str,
    ipaddress.IPv6Interface: str,
}
"""What of a value stands on the tape, by its exact class."""


def _of_pairs(cls: Any) -> Callable[[Any], Any]:
    return lambda value: cls([tuple(pair) for pair in value])


_MADE: Final[dict[str, Callable[[Any], Any]]] = {
    "int": lambda value: int(value, 16),
    "float": float,
    "dict": _of_pairs(dict),
    "set": set,
    "frozenset": frozenset,
    "bytes": base64.b64decode,
    "bytearray": lambda value: bytearray(base64.b64decode(value)),
    "complex": lambda value: complex(*value),
    "range": lambda value: range(*value),
    "slice": lambda value: slice(*value),
    "datetime.datetime": lambda value: dt.datetime.fromisoformat(value[0]).replace(
        fold=value[1], tzinfo=value[2]
    ),
    "datetime.time": lambda value: dt.time.fromisoformat(value[0]).replace(
        fold=value[1], tzinfo=value[2]
    ),
    "datetime.date": dt.date.fromisoformat,
    "datetime.timedelta": lambda value: dt.timedelta(*value),
    "datetime.timezone": lambda value: dt.timezone(*value),
    "time.struct_time": lambda value: struct_time(*value),
    "fractions.Fraction": lambda value: Fraction(*value),
    "re.Pattern": lambda value: re.compile(*value),
    "collections.OrderedDict": _of_pairs(collections.OrderedDict),
    "collections.defaultdict": lambda value: collections.defaultdict(
        value[0], [tuple(pair) for pair in value[1]]
    ),
    "collections.deque": lambda value: cast("Any", collections.deque)(*value),
}
"""How what stands on the tape becomes a value, by the name of its form; else its class is called."""

_CLASSES: Final = {name_of(cls): cls for cls in _TAKEN}


def _made(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_made(one) for one in cast("list[Any]", plain)]
    if not isinstance(plain, dict):
        return plain
    found = cast("dict[str, Any]", plain)
    form = found.get(TYPE)
    if form is None:
        return {key: _made(one) for key, one in found.items()}
    if form == "unkept":
        raise Unkept(str(found["value"]))
    value = _made(found["value"])
    if form.startswith("numpy."):
        array = importlib.import_module("numpy").load(io.BytesIO(base64.b64decode(value)))
        return array if form == "numpy.array" else array[()]
    if "class" in found:
        module, qualname = found["class"]
        return _of_class(form, module, qualname, value)
    made: Any = _MADE.get(form) or _CLASSES[form]
    return made(value)


def _found(module: str, qualname: str) -> Any:
    """The class of that name, if there is one under it."""
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError):
        return None
    return found


def _of_class(form: str, module: str, qualname: str, value: Any) -> Any:
    cls = _found(module, qualname)
    if not isinstance(cls, type):
        raise ImportError(f"there is no class {module}.{qualname}")
    if form == "class":
        return cls
    if form == "enum":
        return cls(value)
    if form == "tuple":
        return tuple.__new__(cast("Any", cls), value)
    if form == "exception":
        return _exception(cls, *value)
    return _object(cls, *value)


def _base_of(cls: Any) -> Any:
    """The builtin class that an exception class rests on."""
    return next(one for one in cls.__mro__ if one.__module__ == "builtins")


def _exception(cls: Any, arguments: list[Any], state: Any, cause: Any, suppress: bool) -> Any:
    error, base = cls.__new__(cls, *arguments), _base_of(cls)
    base.__init__(error, *arguments)
    if state:
        base.__setstate__(error, state)
    error.__cause__, error.__suppress_context__ = cause, suppress
    return error


def _object(
    cls: Any, arguments: list[Any], state: Any, items: list[Any] | None = None, pairs: Any = None
) -> Any:
    made = cls.__new__(cls, *arguments)
    if items:
        list.extend(made, items)
    for key, one in pairs or ():
        dict.__setitem__(made, key, one)
    if state is None:
        return made
    if hasattr(cls, "__setstate__"):
        made.__setstate__(state)
        return made
    fields, slots = state if isinstance(state, tuple) else (state, None)  # pyright: ignore[reportUnknownVariableType]
    if fields:
        made.__dict__.update(fields)
    for name, one in cast("dict[str, Any]", slots or {}).items():
        object.__setattr__(made, name, one)
    return made
