"""Typed messages: their JSON, reading it back, and the schemas."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.letters import LETTERS
from support.tapes.conventions import SCHEMAS, validator

from playhead_genai import messages as m

PARTS: list[tuple[m.Part, dict[str, Any]]] = [
    (m.Text(content="a"), {"type": "text", "content": "a"}),
    (
        m.Reasoning(content="", extras={"signature": "s"}),
        {"type": "reasoning", "content": "", "signature": "s"},
    ),
    (m.ToolCall(name="f"), {"type": "tool_call", "name": "f"}),
    (
        m.ToolCall(id="1", name="f", arguments={"a": 1}),
        {"type": "tool_call", "id": "1", "name": "f", "arguments": {"a": 1}},
    ),
    (m.ToolCallResponse(response=None), {"type": "tool_call_response", "response": None}),
    (
        m.ServerToolCall(id="1", name="w", server_tool_call={"type": "w"}),
        {"type": "server_tool_call", "id": "1", "name": "w", "server_tool_call": {"type": "w"}},
    ),
    (
        m.ServerToolCallResponse(server_tool_call_response={"type": "w"}),
        {"type": "server_tool_call_response", "server_tool_call_response": {"type": "w"}},
    ),
    (
        m.Blob(mime_type="image/png", modality="image", content="AA=="),
        {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AA=="},
    ),
    (
        m.File(modality="document", file_id="f"),
        {"type": "file", "modality": "document", "file_id": "f"},
    ),
    (
        m.Uri(modality="image", uri="https://x"),
        {"type": "uri", "modality": "image", "uri": "https://x"},
    ),
    (m.Compaction(), {"type": "compaction"}),
    (m.Generic(type="refusal", extras={"content": "No."}), {"type": "refusal", "content": "No."}),
]
IDS = [type(part).__name__ for part, _ in PARTS]


@pytest.mark.parametrize(("part", "expected"), PARTS, ids=IDS)
def test_parts(part: m.Part, expected: dict[str, Any]):
    assert m.plain(part) == expected
    assert next(iter(m.plain(part))) == "type"
    assert m.read_part(expected) == part
    document = json.loads(m.to_json([m.InputMessage(role="user", parts=[part])]))
    validator("gen_ai.input.messages").validate(document)
    validator("gen_ai.output.messages").validate(document)


def test_every_part_is_tested():
    assert {type(part) for part, _ in PARTS} == {*m.PARTS.values(), m.Generic}


def test_messages_round_trip():
    parts = [part for part, _ in PARTS]
    found = [
        m.InputMessage(role="user", parts=parts, name="ann"),
        m.InputMessage(role="assistant", extras={"phase": "x"}),
    ]
    text = m.to_json(found)
    assert m.read_input_messages(text) == found
    assert m.read_input_messages(json.loads(text)) == found
    assert m.read_output_messages('[{"role":"assistant","parts":[],"finish_reason":"stop"}]') == [
        m.OutputMessage(role="assistant", finish_reason="stop")
    ]


def test_tool_definitions_round_trip():
    found = [
        m.ToolDefinition(
            type="function", name="f", description="d", parameters={}, extras={"strict": True}
        ),
        m.ToolDefinition(type="web_search", name="web_search"),
    ]
    text = m.to_json(found)
    assert text == (
        '[{"type":"function","name":"f","description":"d","parameters":{},"strict":true},'
        '{"type":"web_search","name":"web_search"}]'
    )
    assert m.read_tool_definitions(text) == found
    validator("gen_ai.tool.definitions").validate(json.loads(text))


def test_extras_never_hide_a_field():
    part = m.Text(content="a", extras={"content": "b", "type": "c", "more": 1})
    assert m.plain(part) == {"type": "text", "content": "a", "content_": "b", "type_": "c", "more": 1}
    call = m.ToolCall(name="f", extras={"arguments": "x"})
    assert m.plain(call) == {"type": "tool_call", "name": "f", "arguments_": "x"}


def test_what_does_not_have_the_shape_of_its_type_is_generic():
    value = {"type": "text", "text": "a"}
    assert m.read_part(value) == m.Generic(type="text", extras={"text": "a"})
    assert m.plain(m.read_part(value)) == value


@pytest.mark.parametrize("value", ["{}", "[1]", "nope", "5", '[{"role":"a","parts":3}]'])
def test_what_is_no_array_of_messages(value: str):
    with pytest.raises(ValueError):
        m.read_input_messages(value)


@pytest.mark.parametrize(
    ("attribute", "document"),
    [
        ("gen_ai.input.messages", [{"role": "user"}]),
        ("gen_ai.input.messages", [{"parts": []}]),
        ("gen_ai.input.messages", [{"role": "user", "parts": [{"type": "text"}]}]),
        ("gen_ai.input.messages", [{"role": "user", "parts": [{"content": "a"}]}]),
        (
            "gen_ai.input.messages",
            [
                {
                    "role": "u",
                    "parts": [{"type": "blob", "modality": "image", "content": "", "detail": 1}],
                }
            ],
        ),
        (
            "gen_ai.input.messages",
            [{"role": "u", "parts": [{"type": "uri", "modality": "image", "uri": "data:,x"}]}],
        ),
        ("gen_ai.output.messages", [{"role": "a", "parts": [{"type": "tool_call"}]}]),
        ("gen_ai.output.messages", [{"role": "a", "parts": [], "finish_reason": 1}]),
        ("gen_ai.system_instructions", [{"type": "text"}]),
        ("gen_ai.system_instructions", {}),
        ("gen_ai.tool.definitions", [{"type": "function"}]),
        ("gen_ai.tool.definitions", [{"name": "f"}]),
    ],
)
def test_the_schemas_refuse(attribute: str, document: Any):
    with pytest.raises(jsonschema.ValidationError):
        validator(attribute).validate(document)


@pytest.mark.parametrize("attribute", SCHEMAS)
def test_the_schemas_are_schemas(attribute: str):
    jsonschema.Draft202012Validator.check_schema(validator(attribute).schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(LETTERS, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(["type", "content", "id", "name", "response", "modality", "uri", "parts"])


@given(
    st.dictionaries(
        FIELDS | st.text(LETTERS, max_size=3), JSON | st.sampled_from(sorted(m.PARTS)), max_size=6
    )
)
def test_reading_and_writing_any_part_settles(value: dict[str, Any]):
    part = m.read_part(value)
    assert m.read_part(m.plain(part)) == part


ODD = [
    5,
    "tool_call",
    [5],
    {"type": "tool_call"},
    [{"type": "tool_call", "name": 5}, {"type": []}],
    None,
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_tools_called_are_those_of_the_messages(odd: Any):
    parts = [m.plain(part) for part, _ in PARTS]
    for value in ([{"parts": parts}] * 2, [{"parts": parts}, {"parts": odd}], odd):
        said = json.dumps(value)
        try:
            expected = m.called_in(m.read_output_messages(said))
        except ValueError:
            with pytest.raises(ValueError, match=r"not an array of objects|malformed"):
                m.tools_called(said)
        else:
            assert m.tools_called(said) == expected
