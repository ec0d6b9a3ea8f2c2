"""What other tools write, in the words of the GenAI conventions."""

import json
from typing import Any

import pytest
from support.answers.dialects import (
    LANGFUSE,
    LANGFUSE_RESPONSES,
    LANGSMITH,
    OPENINFERENCE,
    OPENLLMETRY,
    VERCEL,
)

from playhead_genai.messages import read_input_messages, read_output_messages
from playhead_genai.other_conventions import attributes_in_our_words, elsewhere
from playhead_semconv import attributes as a

CALL = {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"at": "Bonn"}}


@pytest.mark.parametrize("told", [OPENINFERENCE, OPENLLMETRY], ids=["openinference", "openllmetry"])
def test_a_call_to_a_model(told: dict[str, object]):
    found = {**told, **attributes_in_our_words(told)}
    assert found[a.GEN_AI_OPERATION_NAME] == "chat"
    assert found[a.GEN_AI_REQUEST_MODEL] == "gpt-4o"
    assert found[a.GEN_AI_CONVERSATION_ID] == "s-1"
    assert found[a.GEN_AI_USAGE_INPUT_TOKENS] == 812
    assert found[a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS] == 500
    assert found[a.GEN_AI_USAGE_OUTPUT_TOKENS] == 64
    assert found[a.GEN_AI_INPUT_MESSAGES] == [
        {"role": "user", "parts": [{"type": "text", "content": "weather?"}]},
        {"role": "assistant", "parts": [CALL]},
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "call_1", "response": "rain"}],
        },
    ]
    assert found[a.GEN_AI_OUTPUT_MESSAGES] == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Take an umbrella."}]}
    ]


@pytest.mark.parametrize("told", [LANGFUSE, LANGFUSE_RESPONSES, LANGSMITH, VERCEL])
def test_messages_as_they_were_given_to_the_sdk(told: dict[str, Any]):
    found = {**told, **attributes_in_our_words(told)}
    assert (found[a.GEN_AI_OPERATION_NAME], found[a.GEN_AI_REQUEST_MODEL]) == ("chat", "gpt-4o")
    sent = read_input_messages(found[a.GEN_AI_INPUT_MESSAGES])
    user, call, result = (part for message in sent for part in message.parts)
    assert (user.content, call.id, call.name, call.arguments) == (  # pyright: ignore
        "weather?",
        "call_1",
        "weather",
        {"at": "Bonn"},
    )
    assert (result.id, result.response) == ("call_1", "rain")  # pyright: ignore
    (said,) = read_output_messages(found[a.GEN_AI_OUTPUT_MESSAGES])
    assert [part.content for part in said.parts] == ["Take an umbrella."]  # pyright: ignore


@pytest.mark.parametrize(
    "told",
    [
        {"gen_ai.prompt": ["a", "list"], "gen_ai.completion": '{"output":null}'},
        {"gen_ai.prompt": "[" * 100_000},
        {"ai.prompt.messages": '[1, {"role": 7, "content": [[]]}]', "ai.response.toolCalls": "{"},
    ],
)
def test_hostile_content_is_no_content(told: dict[str, object]):
    found = attributes_in_our_words({a.GEN_AI_OPERATION_NAME: "chat", **told})
    assert a.GEN_AI_OUTPUT_MESSAGES not in found


def test_a_result_of_a_tool_as_pydantic_ai_calls_it():
    part = {"type": "tool_call_response", "id": "c", "name": "weather", "result": "rain"}
    (message,) = read_input_messages([{"role": "user", "parts": [part]}])
    assert message.parts[0].response == "rain"  # pyright: ignore


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (
            {"openinference.span.kind": "TOOL", "tool.name": "weather"},
            {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "weather"},
        ),
        (
            {"traceloop.span.kind": "tool", "traceloop.entity.name": "weather"},
            {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "weather"},
        ),
        (
            {"traceloop.span.kind": "agent", "traceloop.entity.name": "planner"},
            {a.GEN_AI_OPERATION_NAME: "invoke_agent", a.GEN_AI_AGENT_NAME: "planner"},
        ),
        ({"openinference.span.kind": "CHAIN"}, {}),
        ({"openinference.span.kind": 7, "llm.input_messages.0": "x"}, {}),
        ({"llm.model_name": "said by nobody known"}, {}),
        ({"llm.request.type": "chat", a.GEN_AI_REQUEST_MODEL: "x", "llm.model_name": "y"}, {
            a.GEN_AI_OPERATION_NAME: "chat"
        }),
    ],
)  # fmt: skip
def test_other_spans(told: dict[str, object], found: dict[str, object]):
    assert attributes_in_our_words(told) == found


@pytest.mark.parametrize(
    ("read", "write"),
    [
        ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
        ("gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_write_tokens"),
        ("gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
        ("llm.token_count.prompt_details.cache_read", "llm.token_count.prompt_details.cache_write"),
        (
            "ai.usage.inputTokenDetails.cacheReadTokens",
            "ai.usage.inputTokenDetails.cacheWriteTokens",
        ),
        ("gen_ai.usage.input_tokens.cached", "gen_ai.usage.input_tokens.cache_write"),
    ],
)
def test_cached_tokens_of_a_call_under_other_names(read: str, write: str):
    told = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_USAGE_INPUT_TOKENS: 130_213, read: 9, write: 2}
    found = {**told, **attributes_in_our_words(told)}
    assert found[a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS] == 9
    written = found.get(a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    assert (written or found[a.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS]) == 2
    assert found[a.GEN_AI_OPERATION_NAME] == "chat"


def test_arguments_that_are_no_json_stay_as_they_are():
    told = {
        "llm.request.type": "chat",
        "gen_ai.completion.0.tool_calls.0.name": "weather",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"at": ',
    }
    (message,) = attributes_in_our_words(told)[a.GEN_AI_OUTPUT_MESSAGES]
    assert message["parts"] == [
        {"type": "tool_call", "id": None, "name": "weather", "arguments": '{"at": '}
    ]


@pytest.mark.parametrize(
    "details",
    [
        {"input": 5, "input_cached_tokens": 9, "input_cache_creation": 2, "output": 3},
        {"input": 5, "cache_read_input_tokens": 9, "cache_write_input_tokens": 2, "output": 3},
        {"input_tokens": 5, "cache_read_input_tokens": 9, "cache_creation_input_tokens": 2}
        | {"cache_creation": {"ephemeral_5m_input_tokens": 2}, "output_tokens": 3},
        {"input": 16, "input_cache_read": 9, "input_cache_creation": 2, "output": 3, "total": 19},
        {"input": 5, "input_cache_read": 9, "input_cache_creation": 2, "output": 3, "total": 19},
        {"prompt_tokens": 16, "completion_tokens": 3, "total_tokens": 19}
        | {"prompt_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 2}},
        {"input_tokens": 16, "output_tokens": 3}
        | {"input_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 2}},
    ],
)
@pytest.mark.parametrize(
    "kind", [{"langfuse.observation.type": "generation"}, {a.GEN_AI_OPERATION_NAME: "chat"}]
)
def test_counts_of_langfuse(kind: dict[str, str], details: dict[str, object]):
    told = {**kind, "langfuse.observation.usage_details": json.dumps(details)}
    assert {**told, **attributes_in_our_words(told)} == told | {
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_USAGE_INPUT_TOKENS: 16,
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 9,
        a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: 2,
        a.GEN_AI_USAGE_OUTPUT_TOKENS: 3,
    }


@pytest.mark.parametrize("text", ["", "[1]", '{"input": "x", "output": -1}', "[" * 9999, 7])
def test_counts_of_langfuse_that_cannot_be_read(text: object):
    told = {"langfuse.observation.type": "tool", "langfuse.observation.usage_details": text}
    assert attributes_in_our_words(told) == {a.GEN_AI_OPERATION_NAME: "execute_tool"}


def test_the_older_name_of_a_workflow():
    older = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "refund"}
    assert attributes_in_our_words(older) == {"gen_ai.agent.name": "refund"}
    assert attributes_in_our_words({**older, "gen_ai.agent.name": "triage"}) == {}
    assert ("gen_ai.workflow.name", "refund") in elsewhere("gen_ai.agent.name", "refund")
