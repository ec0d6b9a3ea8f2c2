"""Chat completions: exact attributes for requests, answers, streams, errors."""

from typing import Any

import pytest
from support.answers.wires import DONE, JSON, content, derived, sse, stream, whole

from playhead_genai.providers import Derived, WireResponse, derive, wire_of


def chat(request: dict[str, Any], response: WireResponse | None = None) -> Derived:
    return derived("openai.chat", request, response)


def answered(body: Any, status: int = 200, request: dict[str, Any] | None = None) -> Derived:
    return chat(request or {}, whole(body, status))


def streamed(*chunks: Any, done: bool = True, complete: bool = True) -> Derived:
    return chat({}, stream(*sse(*chunks), *[DONE] * done, complete=complete))


def parts_of(message: dict[str, Any]) -> list[Any]:
    (found,) = content(chat({"messages": [message]}), "input.messages")
    assert found["role"] == message["role"]
    return found["parts"]


def test_dialects_by_path():
    assert wire_of("POST", "https://api.openai.com/v1/chat/completions") == "openai.chat"
    assert wire_of("post", "/openai/deployments/d/chat/completions?api-version=1") == "openai.chat"
    assert wire_of("POST", "/v1/responses/") == "openai.responses"
    assert wire_of("POST", "/v1/embeddings") == "openai.embeddings"
    assert wire_of("POST", "/v1/messages?beta=true") == "anthropic.messages"
    for method, path in [
        ("GET", "/v1/responses"),
        ("POST", "/v1/threads/t/messages"),
        ("POST", "/v1/responses/r/cancel"),
    ]:
        assert wire_of(method, path) is None


def test_request_parameters():
    found = chat(
        {
            "model": "gpt-4o",
            "temperature": 1,
            "top_p": 0.5,
            "frequency_penalty": 0,
            "presence_penalty": -1,
            "max_tokens": 10,
            "max_completion_tokens": 20,
            "stop": "END",
            "seed": 42,
            "n": 2,
            "stream": True,
            "reasoning_effort": "low",
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}},
            "service_tier": "flex",
        }
    )
    assert found == Derived(
        operation="chat",
        request_model="gpt-4o",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.request.temperature": 1.0,
            "gen_ai.request.top_p": 0.5,
            "gen_ai.request.frequency_penalty": 0.0,
            "gen_ai.request.presence_penalty": -1.0,
            "gen_ai.request.max_tokens": 20,
            "gen_ai.request.stop_sequences": ["END"],
            "gen_ai.request.seed": 42,
            "gen_ai.request.choice.count": 2,
            "gen_ai.request.stream": True,
            "gen_ai.request.reasoning.level": "low",
            "gen_ai.output.type": "json",
            "openai.api.type": "chat_completions",
            "openai.request.service_tier": "flex",
        },
        problem="no response",
    )
    assert type(found.attributes["gen_ai.request.temperature"]) is float


def test_what_is_not_sent_is_not_there():
    request = {"model": "m", "n": 1, "stream": False, "service_tier": "auto", "stop": None}
    assert chat(request).attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "openai.api.type": "chat_completions",
    }


def test_numbers_that_no_attribute_holds():
    request = {"seed": 2**63, "n": True, "max_tokens": "9", "temperature": None, "top_k": 2.0}
    found = chat(request).attributes
    assert {name for name in found if name.startswith("gen_ai.request")} == {"gen_ai.request.top_k"}
    assert found["gen_ai.request.top_k"] == 2
    assert chat({"seed": 2**63 - 1}).attributes["gen_ai.request.seed"] == 2**63 - 1


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"response_format": {"type": "json_object"}}, "json"),
        ({"response_format": {"type": "text"}}, "text"),
        ({"modalities": ["text", "audio"]}, "speech"),
    ],
)
def test_output_type(request_: dict[str, Any], expected: str):
    assert chat(request_).attributes["gen_ai.output.type"] == expected


def test_messages_of_every_role():
    found = chat(
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": "Hi", "name": "ann"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"a": [1, 2.5]}'},
                        },
                        {
                            "id": "call_2",
                            "type": "custom",
                            "custom": {"name": "sql", "input": "select 1"},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
                {"role": "assistant", "content": "", "function_call": {"name": "g", "arguments": "{"}},
                {"role": "function", "name": "g", "content": "1"},
            ]
        }
    )
    assert content(found, "input.messages") == [
        {"role": "developer", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}], "name": "ann"},
        {
            "role": "assistant",
            "parts": [
                {"type": "tool_call", "id": "call_1", "name": "f", "arguments": {"a": [1, 2.5]}},
                {
                    "type": "tool_call",
                    "id": "call_2",
                    "name": "sql",
                    "arguments": "select 1",
                    "kind": "custom",
                },
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "ok"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "name": "g", "arguments": "{"}]},
        {
            "role": "function",
            "parts": [{"type": "tool_call_response", "response": "1"}],
            "name": "g",
        },
    ]
    assert "gen_ai.system_instructions" not in found.attributes


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "a"}, {"type": "text", "content": "a"}),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AAAA"},
        ),
        (
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            {"type": "uri", "modality": "image", "uri": "https://x/y.png", "detail": "low"},
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:text/plain,a%20b"}},
            {"type": "blob", "mime_type": "text/plain", "modality": "document", "content": "YSBi"},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "mp3"}},
            {"type": "blob", "mime_type": "audio/mpeg", "modality": "audio", "content": "UklG"},
        ),
        (
            {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
            {"type": "file", "modality": "document", "file_id": "file-1", "filename": "a.pdf"},
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}},
            {"type": "blob", "mime_type": "application/pdf", "modality": "document", "content": "JVBE"},
        ),
        ({"type": "refusal", "refusal": "No."}, {"type": "refusal", "content": "No."}),
        ({"type": "hologram", "depth": 3}, {"type": "hologram", "depth": 3}),
        ({"type": "image_url", "image_url": 5}, {"type": "image_url", "image_url": 5}),
        (7, {"type": "content", "content": 7}),
    ],
)
def test_content_parts(part: Any, expected: dict[str, Any]):
    assert parts_of({"role": "user", "content": [part]}) == [expected]


def test_what_an_assistant_said_before():
    assert parts_of(
        {
            "role": "assistant",
            "reasoning_content": "Hm.",
            "content": "Hi",
            "refusal": "No.",
            "audio": {"id": "a1"},
        }
    ) == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "Hi"},
        {"type": "refusal", "content": "No."},
        {"type": "file", "modality": "audio", "file_id": "a1"},
    ]


def test_tools():
    found = chat(
        {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "f",
                        "description": "Does f.",
                        "parameters": {"type": "object"},
                        "strict": True,
                    },
                },
                {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
                {"type": "function", "function": {"name": "odd", "parameters": "none"}},
            ],
            "functions": [{"name": "g", "parameters": {"type": "object"}}],
        }
    )
    assert content(found, "tool.definitions") == [
        {
            "type": "function",
            "name": "f",
            "description": "Does f.",
            "parameters": {"type": "object"},
            "strict": True,
        },
        {"type": "custom", "name": "sql", "format": {"type": "text"}},
        {"type": "function", "name": "odd", "parameters_": "none"},
        {"type": "function", "name": "g", "parameters": {"type": "object"}},
    ]


COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o-2024-08-06",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        },
        {
            "index": 1,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            "finish_reason": "tool_calls",
        },
    ],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0, "cache_write_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 3},
    },
    "service_tier": "default",
    "system_fingerprint": "fp_1",
}


def test_answer():
    found = answered(COMPLETION)
    assert found.attributes == {
        "gen_ai.operation.name": "chat",
        "openai.api.type": "chat_completions",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.response.finish_reasons": ["stop", "tool_call"],
        "playhead.tool.called": ["f"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "gen_ai.usage.cache_write.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.usage.audio.output_tokens": 3,
        "openai.response.service_tier": "default",
        "openai.response.system_fingerprint": "fp_1",
        "gen_ai.output.messages": (
            '[{"role":"assistant","parts":[{"type":"text","content":"Hi"}]},'
            '{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{}}]}]'
        ),
    }
    assert (found.streamed, found.content_complete) == (False, True)
    assert (found.error_type, found.error_message, found.problem) == ("", "", "")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_call"),
        ("insufficient_system_resource", "insufficient_system_resource"),
    ],
)
def test_finish_reasons(word: str, expected: str):
    found = answered({"choices": [{"message": {"content": "x"}, "finish_reason": word}]})
    assert found.attributes["gen_ai.response.finish_reasons"] == [expected]


def test_audio_answer():
    audio = {"id": "audio_1", "data": "UklG", "transcript": "Hello", "expires_at": 9}
    body = {"choices": [{"message": {"role": "assistant", "audio": audio}, "finish_reason": "stop"}]}
    found = answered(body, request={"modalities": ["text", "audio"], "audio": {"format": "wav"}})
    (message,) = content(found, "output.messages")
    assert message["parts"] == [
        {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "UklG"},
        {"type": "text", "content": "Hello", "audio": {"id": "audio_1", "expires_at": 9}},
    ]


def test_citations_stay_with_the_message():
    message = {"role": "assistant", "content": "See", "annotations": [{"type": "url_citation"}]}
    found = answered({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert content(found, "output.messages") == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "See"}],
            "annotations": [{"type": "url_citation"}],
        }
    ]


def delta(index: int = 0, reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "m1",
        "choices": [{"index": index, "delta": fields, "finish_reason": reason}],
    }


def test_stream_of_two_choices_and_tool_calls():
    def call(
        index: int, identity: str | None = None, name: str | None = None, arguments: str = ""
    ) -> Any:
        function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
        first = {"id": identity, "type": "function"} if identity else {}
        return [{"index": index, "function": function} | first]

    found = streamed(
        delta(role="assistant", content=""),
        delta(1, role="assistant", content="Good "),
        delta(tool_calls=call(0, "call_a", "f")),
        delta(1, content="day"),
        delta(tool_calls=call(0, arguments='{"x"')),
        delta(tool_calls=call(1, "call_b", "g", "{}")),
        delta(tool_calls=call(0, arguments=": 1}")),
        delta(reason="tool_calls"),
        delta(1, reason="length"),
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    )
    assert found.attributes == {
        "gen_ai.operation.name": "chat",
        "openai.api.type": "chat_completions",
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "c1",
        "gen_ai.response.model": "m1",
        "gen_ai.response.finish_reasons": ["tool_call", "length"],
        "playhead.tool.called": ["f", "g"],
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.output.messages": (
            '[{"role":"assistant","parts":['
            '{"type":"tool_call","id":"call_a","name":"f","arguments":{"x":1}},'
            '{"type":"tool_call","id":"call_b","name":"g","arguments":{}}]},'
            '{"role":"assistant","parts":[{"type":"text","content":"Good day"}]}]'
        ),
    }
    assert (found.streamed, found.content_complete, found.problem) == (True, True, "")


def test_deltas_that_repeat_or_empty_what_came():
    def call(**fields: Any) -> Any:
        return delta(tool_calls=[{"index": 0, **fields}])

    found = streamed(
        call(id="call_a", type="function", function={"name": "f", "arguments": "{"}),
        call(id="", type="function", function={"name": None, "arguments": "}"}),
        delta(role="assistant", content=None, reason="tool_calls"),
    )
    (message,) = content(found, "output.messages")
    assert message["parts"] == [{"type": "tool_call", "id": "call_a", "name": "f", "arguments": {}}]


def test_streamed_reasoning_refusal_audio_and_the_unknown():
    found = streamed(
        delta(role="assistant", reasoning_content="Let "),
        delta(reasoning_content="me see"),
        delta(refusal="I can"),
        delta(refusal="not."),
        delta(audio={"id": "a1", "data": "AA"}),
        delta(audio={"data": "BB", "transcript": "He"}),
        delta(audio={"transcript": "y", "expires_at": 3}),
        delta(mood="gr"),
        delta(mood="im", marks=[1]),
        delta(marks=[2]),
        delta(reason="stop"),
    )
    assert content(found, "output.messages") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Let me see"},
                {"type": "refusal", "content": "I cannot."},
                {"type": "blob", "modality": "audio", "content": "AABB"},
                {"type": "text", "content": "Hey", "audio": {"id": "a1", "expires_at": 3}},
            ],
            "mood": "grim",
            "marks": [1, 2],
        }
    ]


def test_a_stream_that_is_cut_keeps_what_came():
    found = streamed(delta(content="Hel"), delta(content="lo"), done=False, complete=False)
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert (found.content_complete, found.problem) == (False, "the stream ended early")


def test_a_tool_call_that_is_cut_keeps_its_text():
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"city": "Par'},
    }
    found = streamed(delta(tool_calls=[call]), done=False, complete=False)
    assert content(found, "output.messages")[0]["parts"] == [
        {"type": "tool_call", "id": "c", "name": "f", "arguments": '{"city": "Par'}
    ]


def test_only_the_choice_that_had_not_ended_is_an_error():
    found = streamed(delta(reason="stop", content="a"), delta(1, content="b"), done=False, complete=True)
    assert found.attributes["gen_ai.response.finish_reasons"] == ["stop", "error"]
    assert found.content_complete is False


def test_done_is_not_needed_when_the_body_is_whole_and_every_choice_ended():
    chunks = (delta(content="a"), delta(reason="stop"))
    assert streamed(*chunks, done=False, complete=True).content_complete is True
    assert streamed(*chunks, done=False, complete=False).content_complete is False
    assert streamed(*chunks, done=True, complete=False).content_complete is True


def test_a_last_event_without_its_empty_line_counts():
    chunks = sse(delta(content="a"), delta(reason="stop"))
    found = chat({}, stream(*chunks, b"data: [DONE]", complete=False))
    assert (found.content_complete, found.problem) == (True, "")


def test_malformed_events_are_passed_over_and_said():
    first, last = sse(delta(content="a"), delta(reason="stop"))
    found = chat({}, stream(first, b"data: {oops\n\n", b"data: 7\n\n", last, DONE))
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "a"}]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert found.problem == (
        "event 1 of the stream: "
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        "; event 2 of the stream is no object"
    )


def test_an_error_within_a_stream():
    error = {"error": {"message": "Overloaded.", "type": "server_error", "code": None}}
    found = streamed(delta(content="a"), error, done=False, complete=True)
    assert (found.error_type, found.error_message) == ("server_error", "Overloaded.")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert (found.content_complete, found.problem) == (False, "")


@pytest.mark.parametrize(
    ("body", "status", "kind", "message"),
    [
        (
            {"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}},
            429,
            "rate_limit_exceeded",
            "Slow down",
        ),
        (
            {"error": {"message": "Bad", "type": "invalid_request_error"}},
            400,
            "invalid_request_error",
            "Bad",
        ),
        ({"error": {"code": 503, "message": "Later"}}, 503, "503", "Later"),
        ({"error": "model not found"}, 404, "404", "model not found"),
        ({"detail": "Not Found"}, 404, "404", "Not Found"),
        ([], 500, "500", ""),
    ],
)
def test_error_bodies(body: Any, status: int, kind: str, message: str):
    found = answered(body, status)
    assert (found.error_type, found.error_message, found.content_complete) == (kind, message, True)
    assert "gen_ai.response.finish_reasons" not in found.attributes
    assert "gen_ai.output.messages" not in found.attributes


def test_an_error_page_is_no_json():
    found = chat({}, WireResponse(502, [("content-type", "text/html")], [b"<html>"], True))
    assert (found.error_type, found.content_complete) == ("502", False)
    assert found.problem == "response body: Expecting value: line 1 column 1 (char 0)"


def test_bodies_that_are_cut():
    found = derive("openai.chat", b'{"model":"m","mess', WireResponse(200, JSON, [b'{"id":"x"'], False))
    assert found.problem.startswith("request body: ")
    assert found.problem.endswith("; the response body ended early")
    assert found.attributes == {"gen_ai.operation.name": "chat"}
    assert found.content_complete is False


def test_text_that_is_not_unicode_is_replaced():
    body = b'{"messages":[{"role":"user","content":"a\xffb"},{"role":"user","content":"\\ud800"}]}'
    found = derive("openai.chat", body, WireResponse())
    messages = content(found, "input.messages")
    assert [message["parts"] for message in messages] == [
        [{"type": "text", "content": "a\ufffdb"}],
        [{"type": "text", "content": "\ufffd"}],
    ]


def test_a_dialect_that_is_not_known():
    with pytest.raises(KeyError):
        derive("telegraph", b"", WireResponse())


def test_an_item_without_an_index_comes_behind_those_with_one():
    def call(name: str, **fields: Any) -> dict[str, Any]:
        return {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} | fields

    found = streamed(
        delta(tool_calls=[call("a", index=0)]),
        delta(tool_calls=[call("b", index=1)]),
        delta(tool_calls=[call("c")]),
        delta(tool_calls=[call("d")]),
    )
    (message,) = content(found, "output.messages")
    assert [part["name"] for part in message["parts"]] == ["a", "b", "c", "d"]
