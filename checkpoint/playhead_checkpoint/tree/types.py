"""Types beyond those of JSON: how a value is split into storable parts, and restored from them.

The store holds a name and parts. The program decides, by registration, which type a name means: stored
data never causes an import, and no pickle is read.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from playhead_checkpoint.tree.nodes import damaged
from playhead_checkpoint.tree.standard_types import STANDARD, WELL_KNOWN, TypeShape
from playhead_core.errors import StateRefused

_T = TypeVar("_T")


class Unregistered(NamedTuple):
    """A value of a type that this program has not registered: its name, and its parts."""

    name: str
    parts: Any


@dataclass(frozen=True, slots=True)
class _Fields:
    """How a dataclass, enum or pydantic model is split into parts and restored."""

    cls: Any

    def of_dataclass(self, value: Any) -> Any:
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}

    def to_dataclass(self, parts: Any) -> Any:
        """Set the fields, calling nothing of the class. A field that is not stored gets its default."""
        declared = {one.name: one for one in dataclasses.fields(self.cls)}
        found: Any = object.__new__(self.cls)
        for name, value in _mapping(parts, declared).items():
            object.__setattr__(found, name, value)
        for name in declared.keys() - parts.keys():
            field = declared[name]
            if field.default is not dataclasses.MISSING:
                object.__setattr__(found, name, field.default)
            elif field.default_factory is not dataclasses.MISSING:
                object.__setattr__(found, name, field.default_factory())
            else:
                raise ValueError(f"no field {name}")
        return found

    def of_model(self, value: Any) -> Any:
        private = value.__pydantic_private__
        return {
            "fields": value.__dict__,
            "set": sorted(value.__pydantic_fields_set__),
            "extra": value.__pydantic_extra__,
            "private": private,
        }

    def to_model(self, parts: Any) -> Any:
        """Restore the model as it was; validators do not run."""
        _mapping(parts, ("fields", "set", "extra", "private"))
        fields = parts["fields"]
        if parts["extra"] is None:
            _mapping(fields, self.cls.model_fields)
        found = self.cls.__new__(self.cls)
        found.__setstate__(
            {
                "__dict__": fields,
                "__pydantic_fields_set__": set(parts["set"]),
                "__pydantic_extra__": parts["extra"],
                "__pydantic_private__": parts["private"],
            }
        )
        return found

    def of_enum(self, value: Any) -> Any:
        return value.value if issubclass(self.cls, enum.Flag) else value.name

    def to_enum(self, parts: Any) -> Any:
        return self.cls(parts) if issubclass(self.cls, enum.Flag) else self.cls[parts]


def _mapping(parts: Any, names: Mapping[str, Any] | tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(parts, dict):
        raise ValueError("its parts have no names")
    found = cast(dict[str, Any], parts)
    for name in found:
        if name not in names:
            raise ValueError(f"no field {name}")
    return found


class Types:
    """The types that a program stores. Types of the standard library and numpy arrays are predefined.

    A subclass is a separate type and has to be registered too.
    """

    def __init__(self) -> None:
        self._shapes: dict[type[Any], TypeShape] = dict(STANDARD)
        self._by_name = {shape.name: shape for shape in STANDARD.values()}

    def register(
        self,
        cls: type[_T],
        apart: Callable[[_T], Any] | None = None,
        together: Callable[[Any], _T] | None = None,
        *,
        name: str = "",
    ) -> type[_T]:
        """Store values of ``cls``. Returns the class, so it can be used as a decorator.

        ``apart`` returns storable parts of a value, ``together`` restores the value from them;
        dataclasses, enums and pydantic models need neither. ``name`` is stored: keep it when the class
        moves; the default is ``module.qualname``. `StateRefused` if another class has that name, or if
        ``apart`` and ``together`` are needed.
        """
        name = name or f"{cls.__module__}.{cls.__qualname__}"
        fields = _Fields(cls)
        if apart is None or together is None:
            if isinstance(cls, enum.EnumMeta):
                apart, together = fields.of_enum, fields.to_enum
            elif dataclasses.is_dataclass(cls):
                apart, together = fields.of_dataclass, fields.to_dataclass
            elif hasattr(cls, "__pydantic_fields__") or hasattr(cls, "model_fields"):
                apart, together = fields.of_model, fields.to_model
            else:
                raise StateRefused(
                    f"{name} cannot be registered without saying how it is stored",
                    hint="give register() apart and together",
                )
        if name in self._by_name and self._shapes.get(cls) is not self._by_name[name]:
            raise StateRefused(f"another type is registered as {name}", hint="give register() a name")
        shape = TypeShape(name, apart, together)
        self._shapes[cls] = self._by_name[name] = shape
        return cls

    def shape_of(self, value: object) -> TypeShape | None:
        """Return how a value is stored; None if its type is not registered."""
        cls = type(value)
        shape = self._shapes.get(cls)
        if shape is None:
            for known in WELL_KNOWN:
                if shape := known.of(cls):
                    break
        return shape

    def model_name(self, cls: type[Any]) -> str:
        """Return the name of a pydantic model that is stored by its fields; empty for other types."""
        shape = self._shapes.get(cls)
        return shape.name if shape and getattr(shape.apart, "__func__", None) is _Fields.of_model else ""

    def together(self, name: str, parts: Any) -> Any:
        """Restore a value from its parts. `CorruptTape` if they do not fit the type."""
        shape = self._by_name.get(name)
        if shape is None:
            shape = next((known.shape for known in WELL_KNOWN if known.shape.name == name), None)
        if shape is None:
            return Unregistered(name, parts)
        try:
            return shape.together(parts)
        except ImportError:  # numpy is not installed here
            return Unregistered(name, parts)
        except Exception as problem:  # the constructor of a type may raise anything
            raise damaged(f"no {name}: {type(problem).__name__}: {problem}") from None


TYPES = Types()
"""The types of this program: the default of every store."""

register = TYPES.register
