"""Checks of values against JSON schemas: arguments of tools, structured outputs.

A schema comes from the recorded program or from any sender, so a check is bounded: its regular
expressions are not run, and it follows a limited number of references.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final, cast

MOST_REFERENCES: Final = 10_000
"""References (`$ref`) that one check follows: nested ones grow exponentially."""
LONGEST_CHECKED: Final = 1 << 18
"""Characters of a value that is checked; larger ones are taken to fit."""
_UNBOUNDED: Final = frozenset(("patternProperties", "$dynamicRef", "$recursiveRef", "uniqueItems"))
"""Keywords with which a schema is not checked at all."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_HARMLESS: Final = frozenset(("type", "description", "title", "default", "examples"))
_OBJECT: Final = _HARMLESS | {"properties", "required", "additionalProperties", "$schema", "strict"}


def problem_with(schema: Any, value: Any) -> str:
    """Return in what a value does not fit a schema; empty if it fits, or if this is no whole schema.

    >>> problem_with({"properties": {"n": {"type": "integer"}}, "required": ["n"]}, {})
    "'n' is a required property"
    """
    if _plainly_fits(schema, value) or _is_unbounded(schema) or len(repr(value)) > LONGEST_CHECKED:
        return ""
    import jsonschema.exceptions as said  # imported late: most values plainly fit
    import jsonschema.validators
    import referencing.exceptions

    validators: Any = jsonschema.validators  # its types are unknown
    try:
        kind = validators.validator_for(schema)
        kind.check_schema(schema)
        kind = validators.extend(kind, {"pattern": _ignore, "$ref": _bounded(kind.VALIDATORS["$ref"])})
        # An empty registry: a reference to another document is not fetched.
        wrong = kind(schema, registry=referencing.Registry[Any]()).iter_errors(value)
        problem = cast("said.ValidationError | None", said.best_match(wrong))
    except (said.SchemaError, referencing.exceptions.Unresolvable, RecursionError):
        return ""
    except (ValueError, TypeError, AttributeError):  # no schema at all, or too many references
        return ""
    return "" if problem is None else problem.message


def _is_unbounded(schema: Any) -> bool:
    """Whether a keyword of `_UNBOUNDED` occurs in a schema."""
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if not _UNBOUNDED.isdisjoint(cast("dict[Any, Any]", part)):
                return True
            parts += cast("dict[Any, Any]", part).values()
        elif isinstance(part, list):
            parts += cast("list[Any]", part)
    return False


def _ignore(*_: Any) -> Iterator[Any]:
    return iter(())


def _bounded(follow: Any) -> Any:
    """Return the check of a reference; it raises ValueError after `MOST_REFERENCES`."""
    followed = count()

    def bounded(*check: Any) -> Iterator[Any]:
        if next(followed) >= MOST_REFERENCES:
            raise ValueError("too many references")
        yield from follow(*check)

    return bounded


def _plainly_fits(schema: Any, value: Any) -> bool:
    """Return whether an object fits a schema that says no more than names and simple types."""
    if not isinstance(schema, dict) or not isinstance(value, dict) or not schema.keys() <= _OBJECT:
        return False
    fields = cast("dict[str, Any]", value)
    properties = cast("dict[str, Any]", schema).get("properties", {})
    required: Any = cast("dict[str, Any]", schema).get("required", ())
    if not isinstance(properties, dict) or not isinstance(required, list | tuple):
        return False
    return all(name in fields for name in cast("list[Any]", required)) and all(
        _is_simple(cast("dict[str, Any]", properties).get(name), one) for name, one in fields.items()
    )


def _is_simple(schema: Any, value: Any) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _HARMLESS:
        return False
    kind: Any = cast("dict[str, Any]", schema).get("type")
    if kind is None:
        return True
    if not isinstance(kind, str) or kind not in _TYPES:
        return False
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
