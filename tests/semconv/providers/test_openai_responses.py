"""The Responses API: exact attributes for requests, items, answers, streams, errors."""

from typing import Any

import pytest
from support.answers.wires import DONE, content, derived, sse, stream, whole

from playhead_genai.providers import Derived, WireResponse

WIRE = "openai.responses"


def sent(request: dict[str, Any], response: WireResponse | None = None) -> Derived:
    return derived(WIRE, request, response)


def streamed(*events: Any, complete: bool = True) -> Derived:
    return sent({}, stream(*sse(*events), complete=complete))


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "content": value} | more


def test_request_parameters():
    found = sent(
        {
            "model": "o5",
            "temperature": 0.5,
            "top_p": 1,
            "max_output_tokens": 100,
            "stream": True,
            "reasoning": {"effort": "high", "summary": "auto"},
            "previous_response_id": "resp_0",
            "conversation": {"id": "conv_1"},
            "prompt": {"id": "pmpt_1", "version": "2"},
            "text": {"format": {"type": "json_schema", "name": "s", "schema": {}}},
            "service_tier": "priority",
            "instructions": "Be brief.",
            "input": "Hi",
        }
    )
    assert found == Derived(
        operation="chat",
        request_model="o5",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "o5",
            "gen_ai.request.temperature": 0.5,
            "gen_ai.request.top_p": 1.0,
            "gen_ai.request.stream": True,
            "openai.request.service_tier": "priority",
            "gen_ai.request.max_tokens": 100,
            "gen_ai.request.reasoning.level": "high",
            "gen_ai.request.previous_response.id": "resp_0",
            "gen_ai.conversation.id": "conv_1",
            "gen_ai.prompt.name": "pmpt_1",
            "gen_ai.prompt.version": "2",
            "gen_ai.output.type": "json",
            "openai.api.type": "responses",
            "gen_ai.system_instructions": '[{"type":"text","content":"Be brief."}]',
            "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]',
        },
        problem="no response",
    )


def test_instructions_as_items():
    items = [{"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]}]
    assert content(sent({"instructions": items}), "system_instructions") == [text("Be kind.")]
    assert "gen_ai.system_instructions" not in sent({"instructions": None}).attributes


ITEMS = [
    ({"role": "user", "content": "Hi"}, "user", [text("Hi")]),
    (
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
                {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "file_id": "file-2", "filename": "a.pdf"},
                {"type": "input_file", "file_url": "https://x/a.pdf"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,JVBE"},
            ],
        },
        "user",
        [
            text("See"),
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AAAA"},
            {"type": "uri", "modality": "image", "uri": "https://x/y.png", "detail": "auto"},
            {"type": "file", "modality": "image", "file_id": "file-1"},
            {"type": "file", "modality": "document", "file_id": "file-2", "filename": "a.pdf"},
            {"type": "uri", "modality": "document", "uri": "https://x/a.pdf"},
            {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "JVBE"},
        ],
    ),
    (
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "So", "annotations": [], "logprobs": []},
                {"type": "output_text", "text": "No", "annotations": [{"type": "file_citation"}]},
                {"type": "refusal", "refusal": "I cannot."},
            ],
        },
        "assistant",
        [
            text("So"),
            text("No", annotations=[{"type": "file_citation"}]),
            {"type": "refusal", "content": "I cannot."},
        ],
    ),
    (
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}],
            "encrypted_content": "ZW5j",
            "status": None,
        },
        "assistant",
        [{"type": "reasoning", "content": "A\n\nB", "item_id": "rs_1", "encrypted_content": "ZW5j"}],
    ),
    (
        {
            "type": "reasoning",
            "id": "rs_2",
            "summary": [{"type": "summary_text", "text": "A"}],
            "content": [{"type": "reasoning_text", "text": "Long"}],
        },
        "assistant",
        [
            {
                "type": "reasoning",
                "content": "Long",
                "item_id": "rs_2",
                "summary": [{"type": "summary_text", "text": "A"}],
            }
        ],
    ),
    (
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": '{"a":1}',
            "status": "completed",
        },
        "assistant",
        [{"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"a": 1}, "item_id": "fc_1"}],
    ),
    (
        {"type": "function_call_output", "call_id": "call_1", "output": '{"b":2}'},
        "tool",
        [{"type": "tool_call_response", "id": "call_1", "response": '{"b":2}'}],
    ),
    (
        {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "{select}"},
        "assistant",
        [{"type": "tool_call", "id": "call_2", "name": "sql", "arguments": "{select}"}],
    ),
    (
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text"}]},
        "tool",
        [{"type": "tool_call_response", "id": "call_2", "response": [{"type": "input_text"}]}],
    ),
    (
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_3",
            "action": {"type": "click", "x": 1, "y": 2},
            "pending_safety_checks": [],
            "status": "in_progress",
        },
        "assistant",
        [
            {
                "type": "tool_call",
                "id": "call_3",
                "name": "computer",
                "arguments": {"action": {"type": "click", "x": 1, "y": 2}},
                "item_id": "cu_1",
                "status": "in_progress",
            }
        ],
    ),
    (
        {"type": "computer_call_output", "call_id": "call_3", "output": {"type": "computer_screenshot"}},
        "tool",
        [{"type": "tool_call_response", "id": "call_3", "response": {"type": "computer_screenshot"}}],
    ),
    (
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "q"},
        },
        "assistant",
        [
            {
                "type": "server_tool_call",
                "id": "ws_1",
                "name": "web_search",
                "server_tool_call": {"type": "web_search", "action": {"type": "search", "query": "q"}},
            }
        ],
    ),
    (
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1+1",
            "container_id": "c",
            "outputs": [{"type": "logs", "logs": "2"}],
            "status": "incomplete",
        },
        "assistant",
        [
            {
                "type": "server_tool_call",
                "id": "ci_1",
                "name": "code_interpreter",
                "server_tool_call": {
                    "type": "code_interpreter",
                    "code": "1+1",
                    "container_id": "c",
                    "status": "incomplete",
                },
            },
            {
                "type": "server_tool_call_response",
                "id": "ci_1",
                "server_tool_call_response": {
                    "type": "code_interpreter",
                    "outputs": [{"type": "logs", "logs": "2"}],
                },
            },
        ],
    ),
    (
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "name": "read",
            "server_label": "fs",
            "arguments": '{"p":"a"}',
            "output": None,
            "error": "denied",
        },
        "assistant",
        [
            {
                "type": "server_tool_call",
                "id": "mcp_1",
                "name": "read",
                "server_tool_call": {"type": "mcp", "server_label": "fs", "arguments": {"p": "a"}},
            },
            {
                "type": "server_tool_call_response",
                "id": "mcp_1",
                "server_tool_call_response": {"type": "mcp", "error": "denied"},
            },
        ],
    ),
    (
        {"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "output_format": "webp"},
        "assistant",
        [
            {
                "type": "server_tool_call",
                "id": "ig_1",
                "name": "image_generation",
                "server_tool_call": {"type": "image_generation", "output_format": "webp"},
            },
            {"type": "blob", "mime_type": "image/webp", "modality": "image", "content": "AAAA"},
        ],
    ),
    (
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"},
        "assistant",
        [{"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"}],
    ),
    (
        {"type": "mcp_list_tools", "id": "l", "server_label": "fs", "tools": [{"name": "read"}]},
        "assistant",
        [{"type": "mcp_list_tools", "id": "l", "server_label": "fs", "tools": [{"name": "read"}]}],
    ),
    (
        {"type": "item_reference", "id": "msg_1"},
        "user",
        [{"type": "item_reference", "id": "msg_1"}],
    ),
    ("bare", "user", [text("bare")]),
]


@pytest.mark.parametrize(
    ("item", "role", "parts"),
    ITEMS,
    ids=lambda value: value.get("type", "message") if isinstance(value, dict) else "",
)
def test_items(item: Any, role: str, parts: list[Any]):
    assert content(sent({"input": [item]}), "input.messages") == [{"role": role, "parts": parts}]


def test_what_a_message_carries_beside_its_content_is_kept():
    item = {"type": "message", "role": "assistant", "id": "msg_1", "phase": "commentary", "content": "a"}
    assert content(sent({"input": [item]}), "input.messages") == [
        {"role": "assistant", "parts": [text("a")], "id": "msg_1", "phase": "commentary"}
    ]


def test_tools():
    found = sent(
        {
            "tools": [
                {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True},
                {"type": "web_search", "search_context_size": "low"},
                {"type": "mcp", "server_label": "fs", "server_url": "https://x"},
            ]
        }
    )
    assert content(found, "tool.definitions") == [
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True},
        {"type": "web_search", "name": "web_search", "search_context_size": "low"},
        {"type": "mcp", "name": "fs", "server_label": "fs", "server_url": "https://x"},
    ]


MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "o5-2026",
    "status": "completed",
    "output": [REASONING, MESSAGE, CALL],
    "usage": {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 20,
    },
    "service_tier": "default",
    "error": None,
    "incomplete_details": None,
}
PARTS = [
    {"type": "reasoning", "content": "", "item_id": "rs_1", "encrypted_content": "ZW5j"},
    text("Hello"),
    {"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"a": 1}, "item_id": "fc_1"},
]
ATTRIBUTES = {
    "gen_ai.operation.name": "chat",
    "openai.api.type": "responses",
    "gen_ai.response.id": "resp_1",
    "gen_ai.response.model": "o5-2026",
    "gen_ai.response.finish_reasons": ["tool_call"],
    "playhead.tool.called": ["f"],
    "gen_ai.usage.input_tokens": 11,
    "gen_ai.usage.output_tokens": 9,
    "gen_ai.usage.cache_read.input_tokens": 3,
    "gen_ai.usage.cache_write.input_tokens": 0,
    "gen_ai.usage.reasoning.output_tokens": 4,
    "openai.response.service_tier": "default",
}


def test_answer():
    found = sent({}, whole(RESPONSE))
    assert content(found, "output.messages") == [{"role": "assistant", "parts": PARTS}]
    del found.attributes["gen_ai.output.messages"]
    assert found == Derived(operation="chat", attributes=ATTRIBUTES, content_complete=True)


def incomplete(reason: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"output": [MESSAGE]}, ["stop"]),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, ["length"]),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            ["content_filter"],
        ),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, ["steered"]),
        ({"status": "incomplete"}, ["error"]),
        ({"status": "failed"}, ["error"]),
        ({"status": "cancelled"}, ["error"]),
        ({"status": "queued", "output": []}, None),
    ],
)
def test_finish_reasons(change: dict[str, Any], expected: list[str] | None):
    found = sent({}, whole(RESPONSE | change))
    assert found.attributes.get("gen_ai.response.finish_reasons") == expected


def test_a_response_that_failed():
    error = {"code": "server_error", "message": "Oops"}
    found = sent({}, whole(RESPONSE | {"status": "failed", "error": error, "output": []}))
    assert (found.error_type, found.error_message, found.content_complete) == (
        "server_error",
        "Oops",
        True,
    )


def test_the_conversation_that_the_response_names():
    found = sent({}, whole(RESPONSE | {"conversation": {"id": "conv_2"}}))
    assert found.attributes["gen_ai.conversation.id"] == "conv_2"


def test_compaction_is_said():
    found = sent({}, whole(RESPONSE | {"output": [{"type": "compaction", "encrypted_content": "x"}]}))
    assert found.attributes["gen_ai.conversation.compacted"] is True


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def item(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return event(f"output_item.{kind}", output_index=index, item=fields)


def at(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return event(kind, output_index=index, content_index=0, **fields)


BASE = RESPONSE | {"status": "in_progress", "output": [], "usage": None}
EVENTS = [
    event("created", response=BASE),
    event("in_progress", response=BASE),
    item("added", 0, type="reasoning", id="rs_1", summary=[]),
    event("reasoning_summary_part.added", output_index=0, summary_index=0, part={"text": ""}),
    event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Th"),
    event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="ink"),
    item("done", 0, **REASONING),
    item("added", 1, type="message", id="msg_1", role="assistant", content=[]),
    at("content_part.added", 1, part={"type": "output_text", "text": "", "annotations": []}),
    at("output_text.delta", 1, delta="Hel"),
    at("output_text.delta", 1, delta="lo"),
    at("output_text.done", 1, text="Hello"),
    at("content_part.done", 1, part=MESSAGE["content"][0]),
    item("done", 1, **MESSAGE),
    item("added", 2, **CALL | {"arguments": "", "status": "in_progress"}),
    event("function_call_arguments.delta", output_index=2, delta='{"a"'),
    event("function_call_arguments.delta", output_index=2, delta=":1}"),
    event("function_call_arguments.done", output_index=2, arguments='{"a":1}'),
    item("done", 2, **CALL),
    event("completed", response=RESPONSE),
]


def test_stream():
    found = streamed(*EVENTS, complete=False)
    assert content(found, "output.messages") == [{"role": "assistant", "parts": PARTS}]
    del found.attributes["gen_ai.output.messages"]
    assert found == Derived(
        operation="chat",
        attributes=ATTRIBUTES | {"gen_ai.request.stream": True},
        streamed=True,
        content_complete=True,
    )
    assert sent({}, stream(*sse(*EVENTS), DONE)).problem == ""


def test_the_items_of_a_stream_whose_last_response_has_none():
    last = event("completed", response=RESPONSE | {"output": []})
    found = streamed(*EVENTS[:-1], last)
    assert content(found, "output.messages") == [{"role": "assistant", "parts": PARTS}]


@pytest.mark.parametrize(
    ("count", "parts"),
    [
        (6, [{"type": "reasoning", "content": "Think", "item_id": "rs_1"}]),
        (7, PARTS[:1]),
        (10, [PARTS[0], text("Hel")]),
        (11, [PARTS[0], text("Hello")]),
        (
            16,
            [
                *PARTS[:2],
                {
                    "type": "tool_call",
                    "id": "call_1",
                    "name": "f",
                    "arguments": '{"a"',
                    "item_id": "fc_1",
                    "status": "in_progress",
                },
            ],
        ),
        (19, PARTS),
    ],
)
def test_a_stream_that_is_cut_keeps_what_came(count: int, parts: list[Any]):
    found = streamed(*EVENTS[:count], complete=False)
    assert content(found, "output.messages") == [{"role": "assistant", "parts": parts}]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert found.attributes["gen_ai.response.id"] == "resp_1"
    assert (found.content_complete, found.problem) == (False, "the stream ended early")


def test_a_stream_that_is_cut_at_once():
    found = streamed(complete=False)
    assert "gen_ai.response.finish_reasons" not in found.attributes
    assert (found.content_complete, found.problem) == (False, "the stream ended early")


def test_a_stream_that_is_incomplete_has_said_so():
    last = RESPONSE | incomplete("max_output_tokens")
    found = streamed(event("created", response=BASE), event("incomplete", response=last))
    assert found.attributes["gen_ai.response.finish_reasons"] == ["length"]
    assert (found.content_complete, found.problem) == (True, "")


def test_a_stream_that_fails_has_said_so():
    last = RESPONSE | {"status": "failed", "error": {"code": "server_error", "message": "Oops"}}
    found = streamed(event("created", response=BASE), event("failed", response=last))
    assert (found.error_type, found.error_message) == ("server_error", "Oops")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert (found.content_complete, found.problem) == (True, "")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow"}},
    ],
)
def test_an_error_within_a_stream(error: dict[str, Any]):
    found = streamed(*EVENTS[:11], error)
    assert (found.error_type, found.error_message) == ("rate_limit_exceeded", "Slow")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert (found.content_complete, found.problem) == (False, "")


def test_what_else_a_cut_stream_holds():
    found = streamed(
        at("refusal.delta", 0, delta="I can"),
        at("refusal.delta", 0, delta="not."),
        item("added", 1, type="code_interpreter_call", id="ci_1", code=""),
        event("code_interpreter_call_code.delta", output_index=1, delta="1+1"),
        item("added", 2, type="image_generation_call", id="ig_1"),
        event("image_generation_call.partial_image", output_index=2, partial_image_b64="AAAA"),
        item("added", 3, type="custom_tool_call", call_id="c", name="sql", input=""),
        event("custom_tool_call_input.delta", output_index=3, delta="select 1"),
        at("output_text.delta", 4, delta="See"),
        at("output_text.annotation.added", 4, annotation={"type": "url_citation"}),
        event("hologram.delta", output_index=5, delta="ra"),
        event("hologram.delta", output_index=5, delta="ys"),
    )
    (message,) = content(found, "output.messages")
    assert message["parts"] == [
        {"type": "refusal", "content": "I cannot."},
        {
            "type": "server_tool_call",
            "id": "ci_1",
            "name": "code_interpreter",
            "server_tool_call": {"type": "code_interpreter", "code": "1+1"},
        },
        {
            "type": "server_tool_call",
            "id": "ig_1",
            "name": "image_generation",
            "server_tool_call": {"type": "image_generation", "partial_image_b64": "AAAA"},
        },
        {"type": "tool_call", "id": "c", "name": "sql", "arguments": "select 1"},
        text("See", annotations=[{"type": "url_citation"}]),
        {"type": "hologram", "hologram": "rays"},
    ]


def test_each_summary_of_a_cut_stream_is_a_paragraph_of_its_own():
    found = streamed(
        item("added", 0, type="reasoning", id="rs_1", summary=[]),
        event("reasoning_summary_part.added", output_index=0, summary_index=0, part={"text": ""}),
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="First"),
        event("reasoning_summary_part.added", output_index=0, summary_index=1, part={"text": ""}),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Sec"),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="ond"),
        complete=False,
    )
    (message,) = content(found, "output.messages")
    assert [part["content"] for part in message["parts"]] == ["First\n\nSecond"]
