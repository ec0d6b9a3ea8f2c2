"""Check whether an edited state fits the classes of its program.

The schema is what a class declares for its fields: pydantic has a validator, dataclasses and structs
have annotations. A plain dict or list has no schema.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from playhead_core.errors import UsageError
from playhead_instrumentation.libraries.common import values


def fitting(name: str, document: Any, before: Any) -> Any:
    """Return the value that an edited document of the state ``name`` means.

    UsageError if it does not fit. ``before``: the state; what does not fit there either is let be.
    """
    try:
        value = values.read(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except values.Unkept as problem:
        raise UsageError(
            f"the state {name} holds what cannot be made again: {problem}",
            hint="register what can be: numbers, texts, lists, dicts, objects of plain classes",
        ) from problem
    except ValueError as problem:
        raise UsageError(f"the edited state {name} is no value", cause=str(problem)) from problem
    known = {path for path, _ in _misfits(before, "")}
    for path, why in _misfits(value, ""):
        if path not in known:
            raise UsageError(f"{name}{path} cannot be this", cause=why)
    return value


def _misfits(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a value that break the schema of its class, with the reason."""
    cls: Any = cast("type[Any]", type(value))
    if isinstance(value, values.Placeholder | values.PlaceholderError):
        yield path, repr(value)
    elif isinstance(value, Mapping):
        for key, one in cast("Mapping[Any, Any]", value).items():
            yield from _misfits(one, f"{path}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for at, one in enumerate(cast("list[Any]", value)):
            yield from _misfits(one, f"{path}[{at}]")
    elif hasattr(cls, "__pydantic_validator__"):
        yield from _by_pydantic(value, cls, path)
    elif dataclasses.is_dataclass(cls) or isinstance(value, msgspec.Struct):
        yield from _by_annotations(value, cls, path)


def _by_pydantic(value: Any, cls: Any, path: str) -> Iterator[tuple[str, str]]:
    try:
        cls.__pydantic_validator__.validate_python({**vars(value)}, strict=True)
    except ValueError as problem:
        errors: Any = getattr(problem, "errors", None)
        told: list[Any] = [] if errors is None else errors()
        for one in told or [{"loc": (), "msg": str(problem)}]:
            steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in one["loc"])
            yield path + "".join(steps), str(one["msg"])


def _by_annotations(value: Any, cls: Any, path: str) -> Iterator[tuple[str, str]]:
    try:
        hints = typing.get_type_hints(cls)
    except Exception:  # an annotation that names what is not there
        hints = {}
    for field in hints:
        one = getattr(value, field, None)
        below = list(_misfits(one, f"{path}.{field}"))
        yield from below
        if not below and hasattr(value, field):
            try:
                msgspec.convert(one, hints[field], strict=True, from_attributes=True)
            except msgspec.ValidationError as problem:
                yield f"{path}.{field}", str(problem)
            except TypeError:  # a type that msgspec does not know
                continue
