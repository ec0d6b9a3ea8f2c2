"""Convert Python values to JSON text and back: equal, and of the same type.

A value that JSON cannot express is an object with the key ``$type``: ``{"$type": "bytes", "value":
"aGk="}``. Objects of the program's own classes are stored as class and state. They are rebuilt without
running any of their code (`plain_classes`). Nothing is pickled, and nothing but numpy is imported.
Anything else that a tape names becomes a `Placeholder`. `Unkept` is raised for values that cannot be
stored: open files, connections, functions, generators, classes inside functions, objects that customize
how they are pickled or restored, cycles.
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
import operator
import pathlib
import re
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from time import struct_time
from typing import Any, Final, NoReturn, cast

from playhead_instrumentation.patching import plain_classes

TYPE: Final = "$type"
"""The key that marks a value that is not plain JSON."""

DEEPEST: Final = 200
"""Largest number of nested levels."""


class Unkept(Exception):
    """A value that cannot be kept on a tape; the text is the name of its class."""


class Placeholder:
    """Stands for a value that the tape names and that was not rebuilt.

    Any use raises an error that says so.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<placeholder of {self._name}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_not_made(self._name))

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_not_made(self._name))


class PlaceholderError(Exception):
    """Stands for an exception that the tape names and that was not rebuilt."""


def _not_made(name: str) -> str:
    return f"the tape names {name}, which is no plain class that the program has: nothing was made of it"


def written(value: Any, *, stubs: list[str] | None = None) -> bytes:
    """Return ``value`` as JSON text; equal values give equal bytes. `Unkept` if that is not possible.

    With ``stubs`` nothing is raised: a value that cannot be kept is written as the name of its class,
    which is added to the list.
    """
    text = _dumped(_Writer(stubs, ordered=True).of(value))
    return text.encode("utf-8", "surrogatepass")


def kept(value: Any) -> bytes:
    """Return ``value`` as JSON text from which `read` rebuilds it. `Unkept` if that is not possible."""
    writer = _Writer(None)
    data = _dumped(writer.of(value)).encode("utf-8", "surrogatepass")
    if writer.classes:
        # A class may use its state in any way, so check that the value comes back the same.
        try:
            again = written(read(data))
        except Exception as problem:
            raise Unkept(writer.classes[0]) from problem
        if again != written(value):
            raise Unkept(writer.classes[0])
    return data


def read(data: bytes) -> Any:
    """Return the value that was `kept`. `Unkept` for one that was not, ValueError for what is no value.

    A `Placeholder` stands for what the tape names and what is not rebuilt (`plain_classes`).
    """
    try:
        return _made(json.loads(data.decode("utf-8", "surrogatepass")))
    except (Unkept, ValueError):
        raise
    except RecursionError:
        raise ValueError("nested too deep") from None
    except Exception as problem:
        raise ValueError(f"no value: {problem}") from problem


def name_of(cls: type) -> str:
    """Return the module and qualified name of a class; for a builtin only the name."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _dumped(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _text(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode()


class _Writer:
    """Converts one value to plain JSON."""

    def __init__(self, stubs: list[str] | None, *, ordered: bool = False) -> None:
        """``ordered``: write sets in a canonical order instead of iteration order."""
        self.classes: list[str] = []
        """Classes outside the standard library that were found."""
        self._stubs = stubs
        self._ordered = ordered
        self._above: list[int] = []

    def of(self, value: Any) -> Any:
        cls = cast("type[Any]", type(value))
        if value is None or cls is str or cls is bool:
            return value
        if cls is int:
            # Python does not convert longer ones to decimal digits.
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
        if plain_classes.class_named(cls.__module__, cls.__qualname__) is not cls:
            raise Unkept(name_of(cls))
        if cls.__module__ not in sys.stdlib_module_names:
            self.classes.append(name_of(cls))
        return {TYPE: form, "class": [cls.__module__, cls.__qualname__], "value": self.of(value)}

    def _exception(self, error: BaseException, cls: type[Any]) -> Any:
        made: Any = plain_classes.builtin_base(cls).__reduce__(error)
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
"""Converters from a value to what the tape holds, by exact class."""


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
    "fractions.Fraction": lambda value: Fraction(*map(operator.index, value)),
    "re.Pattern": lambda value: re.compile(*value),
    "collections.OrderedDict": _of_pairs(collections.OrderedDict),
    "collections.defaultdict": lambda value: collections.defaultdict(
        value[0], [tuple(pair) for pair in value[1]]
    ),
    "collections.deque": lambda value: cast("Any", collections.deque)(*value),
}
"""Converters from the tape's form of a value, by name of the form; for others the class is called."""

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
    if "class" in found:
        module, qualname = found["class"]
        return _of_class(str(form), str(module), str(qualname), value)
    if form in ("numpy.array", "numpy.scalar"):
        array = _numpy_array(base64.b64decode(value))
        return array if form == "numpy.array" else array[()]
    made: Any = _MADE.get(form) or _CLASSES.get(form)
    return Placeholder(str(form)) if made is None else made(value)


def _of_class(form: str, module: str, qualname: str, value: Any) -> Any:
    cls = plain_classes.class_named(module, qualname)
    try:
        if cls is None:
            raise TypeError("no class that the program has")
        if form == "class":
            return plain_classes.class_of(cls)
        if form == "enum":
            return plain_classes.member_of(cls, value)
        if form == "tuple":
            return plain_classes.tuple_of(cls, value)
        if form == "object":
            return plain_classes.object_of(cls, *value)
        if form == "exception":
            return plain_classes.exception_of(cls, *value)
    except TypeError:
        pass
    name = f"{module}.{qualname}"
    return PlaceholderError(_not_made(name)) if form == "exception" else Placeholder(name)


def _numpy_array(data: bytes) -> Any:
    """Return an array from a file that `numpy.save` wrote. ValueError if its size does not match."""
    numpy = importlib.import_module("numpy")
    file = io.BytesIO(data)
    form: Any = numpy.lib.format
    version = form.read_magic(file)
    head = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
    shape, by_columns, dtype = head(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError("no array")
    flat = numpy.frombuffer(data, dtype, offset=file.tell()).copy()
    return flat.reshape(shape, order="F" if by_columns else "C")
