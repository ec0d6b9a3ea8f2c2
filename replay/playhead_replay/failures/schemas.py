"""Checks of values against JSON schemas: arguments of tools, structured outputs."""

from __future__ import annotations

from typing import Any, Final, cast

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
    if _plainly_fits(schema, value):
        return ""
    import jsonschema.exceptions as said  # imported late: most values plainly fit
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        kind = validator_for(schema)
        kind.check_schema(schema)
        # An empty registry: a reference to another document is not fetched.
        wrong: Any = kind(schema, registry=Registry()).iter_errors(value)
        problem = cast("said.ValidationError | None", said.best_match(wrong))
    except (said.SchemaError, Unresolvable, RecursionError, ValueError, TypeError, AttributeError):
        return ""
    return "" if problem is None else problem.message


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
