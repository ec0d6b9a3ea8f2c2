"""Anthropic messages: exact attributes for requests, answers, streams, errors."""

from typing import Any

import pytest
from support.answers.wires import content, derived, sse, stream, whole

from playhead_genai.providers import Derived, WireResponse

WIRE = "anthropic.messages"


def sent(request: dict[str, Any], response: WireResponse | None = None) -> Derived:
    return derived(WIRE, request, response)


def streamed(*events: Any, complete: bool = True) -> Derived:
    return sent({}, stream(*sse(*events), complete=complete))


def block_of(block: Any, role: str = "user") -> Any:
    (message,) = content(sent({"messages": [{"role": role, "content": [block]}]}), "input.messages")
    assert message["role"] == role
    (part,) = message["parts"]
    return part


def test_request_parameters():
    found = sent(
        {
            "model": "claude-opus-5",
            "max_tokens": 100,
            "temperature": 0,
            "top_p": 1,
            "top_k": 5,
            "stop_sequences": ["A", "B"],
            "stream": True,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {}}},
        }
    )
    assert found == Derived(
        operation="chat",
        request_model="claude-opus-5",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "claude-opus-5",
            "gen_ai.request.max_tokens": 100,
            "gen_ai.request.temperature": 0.0,
            "gen_ai.request.top_p": 1.0,
            "gen_ai.request.top_k": 5,
            "gen_ai.request.stop_sequences": ["A", "B"],
            "gen_ai.request.reasoning.level": "high",
            "gen_ai.request.stream": True,
            "gen_ai.output.type": "json",
        },
        problem="no response",
    )


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("Be brief.", [{"type": "text", "content": "Be brief."}]),
        (
            [
                {"type": "text", "text": "One", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "Two"},
            ],
            [
                {"type": "text", "content": "One", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "content": "Two"},
            ],
        ),
    ],
)
def test_system_instructions(system: Any, expected: Any):
    assert content(sent({"system": system}), "system_instructions") == expected


def test_messages():
    found = sent(
        {
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                        {"type": "redacted_thinking", "data": "ZW5j"},
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": [{"type": "text", "text": "no"}],
                            "is_error": True,
                        }
                    ],
                },
            ]
        }
    )
    assert content(found, "input.messages") == [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm.", "signature": "c2ln"},
                {"type": "reasoning", "content": "", "redacted": True, "data": "ZW5j"},
                {"type": "text", "content": "I look."},
                {"type": "tool_call", "id": "toolu_1", "name": "f", "arguments": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "toolu_1",
                    "response": [{"type": "text", "text": "no"}],
                    "is_error": True,
                }
            ],
        },
    ]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AAAA"},
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            {"type": "uri", "modality": "image", "uri": "https://x/y.png"},
        ),
        (
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}, "title": "T"},
            {"type": "file", "modality": "document", "file_id": "file_1", "title": "T"},
        ),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
            },
            {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "JVBE"},
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
        ),
        (
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
            {
                "type": "server_tool_call",
                "id": "s1",
                "name": "web_search",
                "server_tool_call": {"type": "web_search", "input": {"query": "q"}},
            },
        ),
        (
            {"type": "mcp_tool_use", "id": "m1", "name": "read", "server_name": "fs", "input": {}},
            {
                "type": "server_tool_call",
                "id": "m1",
                "name": "read",
                "server_tool_call": {"type": "read", "server_name": "fs", "input": {}},
            },
        ),
        (
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]},
            {
                "type": "server_tool_call_response",
                "id": "s1",
                "server_tool_call_response": {"type": "web_search", "content": [{"url": "u"}]},
            },
        ),
        ({"type": "compaction", "content": "So far."}, {"type": "compaction", "content": "So far."}),
        (
            {"type": "search_result", "source": "s", "content": []},
            {"type": "search_result", "source": "s"},
        ),
        ({"type": "container_upload", "file_id": "f"}, {"type": "container_upload", "file_id": "f"}),
        ("bare", {"type": "text", "content": "bare"}),
    ],
)
def test_blocks(block: Any, expected: dict[str, Any]):
    assert block_of(block) == expected


def test_tools():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    found = sent(
        {
            "tools": [
                {"name": "f", "description": "Does f.", "input_schema": schema, "strict": True},
                {"type": "custom", "name": "g", "input_schema": schema},
                {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
                {"type": "mcp_toolset", "mcp_server_name": "fs"},
            ]
        }
    )
    assert content(found, "tool.definitions") == [
        {
            "type": "function",
            "name": "f",
            "description": "Does f.",
            "parameters": schema,
            "strict": True,
        },
        {"type": "function", "name": "g", "parameters": schema},
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
        {"type": "mcp_toolset", "name": "fs", "mcp_server_name": "fs"},
    ]


def test_answer():
    found = sent(
        {},
        whole(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": [
                    {"type": "text", "text": "Hi", "citations": None},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                ],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 10,
                    "cache_creation_input_tokens": 20,
                    "cache_read_input_tokens": 30,
                    "output_tokens": 7,
                    "output_tokens_details": {"thinking_tokens": 4},
                    "service_tier": "standard",
                },
            }
        ),
    )
    assert found.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.model": "claude-opus-5",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "playhead.tool.called": ["f"],
        "gen_ai.usage.input_tokens": 60,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_write.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 4,
        "gen_ai.output.messages": (
            '[{"role":"assistant","parts":[{"type":"text","content":"Hi"},'
            '{"type":"tool_call","id":"t","name":"f","arguments":{}}]}]'
        ),
    }
    assert (found.streamed, found.content_complete, found.problem) == (False, True, "")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_call"),
        ("refusal", "content_filter"),
        ("compaction", "compaction"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_finish_reasons(word: str, expected: str):
    found = sent({}, whole({"content": [], "stop_reason": word}))
    assert found.attributes["gen_ai.response.finish_reasons"] == [expected]


def test_compaction_is_said():
    found = sent(
        {}, whole({"content": [{"type": "compaction", "content": "S"}], "stop_reason": "compaction"})
    )
    assert found.attributes["gen_ai.conversation.compacted"] is True


def start(**message: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    fields = {"id": "msg_1", "role": "assistant", "model": "claude", "content": [], "usage": usage}
    return {"type": "message_start", "message": fields | message}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str, **usage: int | None) -> list[dict[str, Any]]:
    change = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": change, "usage": usage}, {"type": "message_stop"}]


EVENTS = [
    start(),
    {"type": "ping"},
    begin(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Let me "),
    delta(0, "thinking_delta", thinking="see."),
    delta(0, "signature_delta", signature="c2ln"),
    stop(0),
    begin(1, type="text", text=""),
    delta(1, "text_delta", text="I lo"),
    delta(1, "text_delta", text="ok."),
    delta(1, "citations_delta", citation={"type": "char_location", "cited_text": "x"}),
    stop(1),
    begin(2, type="tool_use", id="toolu_1", name="f", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"city": "P'),
    delta(2, "input_json_delta", partial_json='aris"}'),
    stop(2),
    begin(3, type="tool_use", id="toolu_2", name="g", input={}),
    stop(3),
    *end("tool_use", output_tokens=50, input_tokens=None, cache_creation_input_tokens=2),
]
PARTS = [
    {"type": "reasoning", "content": "Let me see.", "signature": "c2ln"},
    {"type": "text", "content": "I look.", "citations": [{"type": "char_location", "cited_text": "x"}]},
    {"type": "tool_call", "id": "toolu_1", "name": "f", "arguments": {"city": "Paris"}},
    {"type": "tool_call", "id": "toolu_2", "name": "g", "arguments": {}},
]


def test_stream():
    found = streamed(*EVENTS, complete=False)
    assert content(found, "output.messages") == [{"role": "assistant", "parts": PARTS}]
    del found.attributes["gen_ai.output.messages"]
    assert found == Derived(
        operation="chat",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.stream": True,
            "gen_ai.response.id": "msg_1",
            "gen_ai.response.model": "claude",
            "gen_ai.response.finish_reasons": ["tool_call"],
            "playhead.tool.called": ["f", "g"],
            "gen_ai.usage.input_tokens": 17,
            "gen_ai.usage.output_tokens": 50,
            "gen_ai.usage.cache_read.input_tokens": 5,
            "gen_ai.usage.cache_write.input_tokens": 2,
        },
        streamed=True,
        content_complete=True,
    )


def test_a_stream_that_is_cut_keeps_what_came():
    found = streamed(*EVENTS[:15], complete=False)
    (message,) = content(found, "output.messages")
    assert message["parts"] == [
        *PARTS[:2],
        {"type": "tool_call", "id": "toolu_1", "name": "f", "arguments": '{"city": "P'},
    ]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert found.attributes["gen_ai.usage.input_tokens"] == 15
    assert (found.content_complete, found.problem) == (False, "the stream ended early")


def test_deltas_whose_block_never_began():
    found = streamed(delta(0, "text_delta", text="lo"), delta(1, "input_json_delta", partial_json="{}"))
    (message,) = content(found, "output.messages")
    assert message["parts"] == [
        {"type": "text", "content": "lo"},
        {"type": "tool_call", "name": "", "arguments": {}},
    ]


def test_blocks_and_deltas_that_are_not_known_are_kept():
    found = streamed(
        start(),
        begin(0, type="hologram", depth=3),
        delta(0, "hologram_delta", rays="ab"),
        delta(0, "hologram_delta", rays="cd"),
        *end("end_turn", output_tokens=1),
    )
    (message,) = content(found, "output.messages")
    assert message["parts"] == [{"type": "hologram", "depth": 3, "rays": "abcd"}]


def test_an_error_within_a_stream():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = streamed(start(), error)
    assert (found.error_type, found.error_message) == ("overloaded_error", "Overloaded")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert (found.content_complete, found.problem) == (False, "")


def test_an_error_body():
    error = {"type": "rate_limit_error", "message": "Slow down"}
    found = sent({}, whole({"type": "error", "error": error, "request_id": "req_1"}, 429))
    assert (found.error_type, found.error_message) == ("rate_limit_error", "Slow down")
    assert found.attributes == {"gen_ai.operation.name": "chat"}
