"""The classes that a tape may name, and how their objects are made without running code of the class.

A tape may come from anywhere, so it is untrusted. Nothing is imported for it: a class is used only if
the program has it already. No code of the class runs: no ``__new__``, ``__init__``, ``__setstate__``,
``__setattr__``, no property. These can be made:

* a member of an enumeration, a named tuple, an exception;
* an object of a data class (of `dataclasses`, pydantic or attrs);
* an object of a class of the program itself, which is neither of the standard library nor installed,
  and which does not customise creation, state or finalization.

A class as a value is one of `AS_VALUES` or of these kinds except the last: a tape supplies nothing to
call.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import sys
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, cast

from playhead_instrumentation.patching.attribution.owners import Owner, owner_of

AS_VALUES: Final = frozenset(
    (bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, object)
)
"""Builtin classes that a tape may name as values: the factory of a defaultdict."""

BASES: Final = (object, int, float, complex, str, bytes, list, dict, tuple)
"""Builtin classes from which a class of the program may derive."""


MAIN: Final = ("__main__", "__mp_main__")
"""Names of the program's main module; the second one in the processes that `multiprocessing` spawns."""


def class_named(module: str, qualname: str) -> type[Any] | None:
    """The class of that name, if the program has it. Imports nothing and calls no ``__getattr__``."""
    found = defined(module, qualname)
    return found if isinstance(found, type) else None


def defined(module: str, qualname: str) -> type[Any] | FunctionType | None:
    """The class or function that a loaded module defines under that name; None if there is none.

    Imports nothing and calls no ``__getattr__``. What the module only imports is not found.
    """
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = _namespace(found).get(name)
    if not isinstance(found, type | FunctionType) or found.__qualname__ != qualname:
        return None
    same = found.__module__ == module or (found.__module__ in MAIN and module in MAIN)
    return cast("type[Any] | FunctionType", found) if same else None


def exception_named(module: str, qualname: str) -> type[Any] | None:
    """As `class_named`, for an exception that may be made in a function, where no name leads to it.

    A function that was called several times has made several such classes; this is the last one.
    """
    if "<locals>" not in qualname:
        return class_named(module, qualname)
    found, pending = None, [BaseException]
    while pending:
        for cls in type.__subclasses__(pending.pop()):
            pending.append(cls)
            if (cls.__module__, cls.__qualname__) == (module, qualname):
                found = cls
    return found


def member_of(cls: type[Any], value: Any) -> Any:
    """The member of an enumeration with ``value``, or a combination of flags. Raises `TypeError`."""
    if not isinstance(cls, enum.EnumType):
        raise TypeError("no enumeration")
    for member in _members(cls):
        if type(member._value_) is type(value) and member._value_ == value:
            return member
    if issubclass(cls, enum.Flag) and cls._missing_.__func__ is enum.Flag._missing_.__func__:  # pyright: ignore[reportFunctionMemberAccess]
        return cls(value)
    raise TypeError("no value of the enumeration")


def tuple_of(cls: type[Any], values: list[Any]) -> Any:
    """A named tuple. Raises `TypeError`."""
    named: Any = cls
    if not issubclass(cls, tuple) or not hasattr(named, "_fields") or _has_end(named):
        raise TypeError("no named tuple")
    return tuple.__new__(named, values)


def exception_of(
    cls: type[Any], arguments: list[Any], state: dict[str, Any] | None, cause: Any, suppress: bool
) -> BaseException:
    """An exception as it was raised. Raises `TypeError`."""
    if not issubclass(cls, BaseException) or _has_end(cls):
        raise TypeError("no exception")
    base = builtin_base(cls)
    error = base.__new__(cls, *arguments)
    base.__init__(error, *arguments)
    _fill(error, state or {})
    BaseException.__setattr__(error, "__cause__", cause)
    BaseException.__setattr__(error, "__suppress_context__", suppress)
    return error


def object_of(
    cls: type[Any],
    arguments: list[Any],
    state: Any,
    items: list[Any] | None = None,
    pairs: list[Any] | None = None,
) -> Any:
    """An object with its state, of a data class or of a class of the program. Raises `TypeError`."""
    base = builtin_base(cls)
    is_data = _is_data_class(cls)
    if base not in BASES or _has_end(cls) or not (is_data or is_of_program(cls.__module__)):
        raise TypeError("no plain class")
    made: Any = base.__new__(cls, *arguments)
    if items:
        list.extend(made, items)
    for key, one in pairs or ():
        dict.__setitem__(made, key, one)
    if is_data == "pydantic":
        cast("Any", sys.modules["pydantic"]).BaseModel.__setstate__(made, state)
    elif is_data == "dataclass" and isinstance(state, list):  # with slots, frozen
        names = [one.name for one in dataclasses.fields(cls)]
        _fill(made, dict(zip(names, cast("list[Any]", state), strict=True)))
    elif state is not None:
        if not is_data and hasattr(cls, "__setstate__"):
            raise TypeError("a class with a way of its own to take its state")
        fields, slots = cast("Any", state if isinstance(state, tuple) else (state, None))
        _fill(made, {**(fields or {}), **(slots or {})})
    return made


def class_of(cls: type[Any]) -> type[Any]:
    """A class as a value. Raises `TypeError`."""
    kinds = (enum.Enum, BaseException)
    if cls in AS_VALUES or issubclass(cls, kinds) or hasattr(cls, "_fields") or _is_data_class(cls):
        return cls
    raise TypeError("no plain class")


def may_be_unpickled(cls: type[Any], *, called: bool) -> bool:
    """Whether a recorded pickle may make an object of a class; ``called``: by calling the class."""
    if _has_end(cls):
        return False
    if issubclass(cls, enum.Enum | BaseException):
        return True
    if called:
        return False
    return hasattr(cls, "_fields") or bool(_is_data_class(cls)) or is_of_program(cls.__module__)


def builtin_base(cls: type[Any]) -> Any:
    """The builtin class from which a class derives."""
    return next(one for one in cls.__mro__ if one.__module__ == "builtins")


def _namespace(found: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(found, "__dict__")
    except AttributeError:  # a name may lead through any object
        return {}


def _members(cls: enum.EnumType) -> list[Any]:
    return list(cast("dict[str, Any]", type.__getattribute__(cls, "_member_map_")).values())


def _has_end(cls: type[Any]) -> bool:
    return any("__del__" in vars(one) for one in cls.__mro__)


def _is_data_class(cls: type[Any]) -> str:
    """The kind of a data class; empty for any other class."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(cls, cast("Any", pydantic).BaseModel):
        own = cls.__setstate__ is cast("Any", pydantic).BaseModel.__setstate__
        return "pydantic" if own else ""
    made: Any = getattr(cls, "__setstate__", None)
    if "__dataclass_fields__" in vars(cls):
        ours = getattr(made, "__module__", None) in (None, dataclasses.__name__)
        return "dataclass" if ours else ""
    if "__attrs_attrs__" in vars(cls):
        generated = made is None or getattr(made, "__name__", "") == "slots_setstate"
        return "attrs" if generated else ""
    return ""


def is_of_program(module: str) -> bool:
    """Whether a loaded module is the program's own: neither of the standard library nor installed."""
    if module in MAIN:
        return True
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = _namespace(sys.modules.get(module)).get("__file__")
    return isinstance(file, str) and owner_of(os.path.realpath(file)) is Owner.PROGRAM


def _fill(made: Any, fields: dict[str, Any]) -> None:
    """Set attributes directly, without any code of the class."""
    try:
        own = cast("dict[str, Any] | None", object.__getattribute__(made, "__dict__"))
    except AttributeError:
        own = None
    for name, value in fields.items():
        slot = next((vars(one)[name] for one in type(made).__mro__ if name in vars(one)), None)
        if isinstance(slot, MemberDescriptorType | GetSetDescriptorType) and not name.startswith("__"):
            slot.__set__(made, value)
        elif own is not None:
            own[name] = value
        else:
            raise TypeError(f"no attribute {name}")
