"""Messages of model calls in the events that instrumentations send or have sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from playhead_genai.messages import read_input_messages, read_output_messages, read_parts
from playhead_genai.other_tools.content_events import CONTENT_EVENTS, ContentEvent, attributes_of_events
from playhead_semconv import attributes as a

TEXT = {"type": "text", "content": "hello"}
CALL = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": 1}}


@pytest.mark.parametrize(
    ("name", "attributes", "body", "attribute", "expected"),
    [
        ("gen_ai.user.message", {}, {"content": "hello"}, "input", {"role": "user", "parts": [TEXT]}),
        ("gen_ai.user.message", {}, "hello", "input", {"role": "user", "parts": [TEXT]}),
        (
            "gen_ai.user.message",
            {"content": "hello", "role": "developer"},
            None,
            "input",
            {"role": "developer", "parts": [TEXT]},
        ),
        (
            "gen_ai.user.message",
            {"gen_ai.event.content": '{"content": "hello"}'},
            None,
            "input",
            {"role": "user", "parts": [TEXT]},
        ),
        (
            "gen_ai.user.message",
            {"content": "[1, 2]"},
            None,
            "input",
            {"role": "user", "parts": [{"type": "text", "content": "[1, 2]"}]},
        ),
        (
            "gen_ai.assistant.message",
            {},
            {"tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": '{"q": 1}'}}]},
            "input",
            {"role": "assistant", "parts": [CALL]},
        ),
        (
            "gen_ai.assistant.message",
            {},
            {"content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": 1}}]},
            "input",
            {"role": "assistant", "parts": [CALL]},
        ),
        (
            "gen_ai.tool.message",
            {},
            {"id": "c1", "content": "found"},
            "input",
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}],
            },
        ),
        (
            "gen_ai.choice",
            {},
            {"index": 0, "finish_reason": "stop", "message": {"content": "hello"}},
            "output",
            {"role": "assistant", "parts": [TEXT], "finish_reason": "stop"},
        ),
        (
            "gen_ai.choice",
            {"message": '[{"text": "hello"}]', "finish_reason": "end_turn"},
            None,
            "output",
            {"role": "assistant", "parts": [TEXT], "finish_reason": "end_turn"},
        ),
        (
            "gen_ai.content.prompt",
            {"gen_ai.prompt": '[{"role": "user", "content": "hello"}]'},
            None,
            "input",
            {"role": "user", "parts": [TEXT]},
        ),
    ],
)
def test_a_message_of_an_event(
    name: str, attributes: dict[str, Any], body: Any, attribute: str, expected: dict[str, Any]
) -> None:
    found = attributes_of_events([ContentEvent(name, 1, attributes, body)])
    assert found == {f"gen_ai.{attribute}.messages": [expected]}
    read = read_input_messages if attribute == "input" else read_output_messages
    assert read(found[f"gen_ai.{attribute}.messages"])[0].parts


def test_messages_are_in_order_and_system_messages_are_instructions() -> None:
    events = [
        ContentEvent("gen_ai.user.message", 3, {}, {"content": "second"}),
        ContentEvent("gen_ai.user.message", 2, {}, {"content": "first"}),
        ContentEvent("gen_ai.system.message", 1, {}, {"content": "hello"}),
        ContentEvent("app.other", 1, {}, {"content": "other"}),
    ]
    found = attributes_of_events(events)
    assert read_parts(found[a.GEN_AI_SYSTEM_INSTRUCTIONS])[0].type == "text"
    texts = [one["parts"][0]["content"] for one in found[a.GEN_AI_INPUT_MESSAGES]]
    assert texts == ["first", "second"]


def test_the_event_with_all_details_counts_more_than_events_of_single_messages() -> None:
    messages = json.dumps([{"role": "user", "parts": [TEXT]}])
    details = "gen_ai.client.inference.operation.details"
    events = [
        ContentEvent(details, 1, {a.GEN_AI_INPUT_MESSAGES: messages}),
        ContentEvent("gen_ai.user.message", 2, {}, {"content": "other"}),
        ContentEvent("gen_ai.choice", 3, {}, {"message": {"content": "answer"}}),
    ]
    found = attributes_of_events(events)
    assert found[a.GEN_AI_INPUT_MESSAGES] == messages
    assert found[a.GEN_AI_OUTPUT_MESSAGES][0]["parts"][0]["content"] == "answer"


@pytest.mark.parametrize("name", sorted(CONTENT_EVENTS))
@pytest.mark.parametrize(
    "value", [None, 7, "", "[", "{", [], [1, None], {"content": [None]}, {"message": 3}, {"a": {}}, b"x"]
)
def test_content_of_any_shape_does_no_harm(name: str, value: Any) -> None:
    attributes = {"content": value, "message": value, "tool_calls": value, "gen_ai.prompt": value}
    attributes |= {a.GEN_AI_INPUT_MESSAGES: value, "role": value, "id": value}
    for event in (ContentEvent(name, 1, attributes), ContentEvent(name, 1, {}, value)):
        attributes_of_events([event])
