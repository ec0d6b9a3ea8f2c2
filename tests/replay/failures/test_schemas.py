"""Checks against schemas, some of which are made to keep the check busy."""

from typing import Any

import pytest

from playhead_replay.failures.schemas import problem_with


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"properties": {"n": {"type": "integer"}}}, {"n": "x"}, "'x' is not of type 'integer'"),
        ({"properties": {"e": {"enum": ["a"]}}}, {"e": "b"}, "'b' is not one of ['a']"),
        (
            {"$defs": {"n": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/n"}}},
            {"x": "s"},
            "'s' is not of type 'integer'",
        ),
        ({"properties": {"n": {"type": "integer"}}, "additionalProperties": False}, {"n": 1}, ""),
        ({"$ref": "http://127.0.0.1:9/never.json"}, {"n": 1}, ""),
        ({"$ref": "#"}, {"n": 1}, ""),
        ("no schema", {"n": 1}, ""),
    ],
)
def test_a_problem_is_named(schema: Any, value: Any, problem: str):
    assert problem_with(schema, value) == problem


def test_no_regular_expression_of_a_schema_is_run():
    text = {"a": "a" * 60 + "!"}  # `pattern` would need years for it
    assert problem_with({"properties": {"a": {"pattern": "^(a+)+$"}}}, text) == ""
    assert problem_with({"patternProperties": {"^(a+)+$": {}}}, {"a" * 60 + "!": 1}) == ""
    nested = {"propertyNames": {"pattern": "^(a+)+$"}}
    assert problem_with(nested, {"a" * 60 + "!": 1}) == ""


def test_references_that_double_at_each_level_are_given_up():
    levels: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(40)
    }
    levels["d40"] = {"type": "object"}
    assert problem_with({"$defs": levels, "$ref": "#/$defs/d0"}, {"a": 1}) == ""
