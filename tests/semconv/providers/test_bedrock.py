"""Bedrock: Converse, text models, embeddings, Claude; event streams and what may be wrong with them."""

from typing import Any

import pytest
from support.answers.event_streams import chunk, event, exception, message
from support.answers.wires import content, dump, whole

from playhead_genai.providers import Derived, WireResponse, derive, recognised

AMAZON = [("content-type", "application/vnd.amazon.eventstream")]
HOST = "https://gateway.corp/model/amazon.nova-micro-v1%3A0"
ASKED: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": [{"text": "Weather?"}, {"cachePoint": {"type": "default"}}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "t0", "name": "weather", "input": {"city": "Oslo"}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t0", "content": [{"text": "rain"}]}}],
        },
    ],
    "system": [{"text": "Be brief."}],
    "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 1, "stopSequences": ["END"]},
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": "weather",
                    "description": "",
                    "inputSchema": {"json": {"type": "object"}},
                }
            }
        ]
    },
}


def streamed(url: str, request: Any, *chunks: bytes, complete: bool = True) -> Derived:
    wire = recognised("POST", url, dump(request))
    assert wire is not None
    return derive(wire, dump(request), WireResponse(200, AMAZON, chunks, complete), url=url)


def converse(*chunks: bytes, complete: bool = True) -> Derived:
    return streamed(f"{HOST}/converse-stream", ASKED, *chunks, complete=complete)


ANSWER = (
    event("messageStart", {"role": "assistant"}),
    event(
        "contentBlockDelta", {"delta": {"reasoningContent": {"text": "Let me "}}, "contentBlockIndex": 0}
    ),
    event("contentBlockDelta", {"delta": {"reasoningContent": {"text": "see"}}, "contentBlockIndex": 0}),
    event(
        "contentBlockDelta",
        {"delta": {"reasoningContent": {"signature": "c2ln"}}, "contentBlockIndex": 0},
    ),
    event("contentBlockDelta", {"delta": {"text": "It "}, "contentBlockIndex": 1}),
    event("contentBlockDelta", {"delta": {"text": "rains"}, "contentBlockIndex": 1}),
    event(
        "contentBlockStart",
        {"start": {"toolUse": {"toolUseId": "t1", "name": "weather"}}, "contentBlockIndex": 2},
    ),
    event("contentBlockDelta", {"delta": {"toolUse": {"input": '{"city":'}}, "contentBlockIndex": 2}),
    event("contentBlockDelta", {"delta": {"toolUse": {"input": '"Rome"}'}}, "contentBlockIndex": 2}),
    event("contentBlockStop", {"contentBlockIndex": 2}),
    event("messageStop", {"stopReason": "tool_use"}),
    event("metadata", {"usage": {"inputTokens": 8, "outputTokens": 3, "cacheReadInputTokens": 4}}),
)


def test_a_converse_stream():
    found = converse(*ANSWER)
    assert (found.problem, found.error_type, found.provider) == ("", "", "aws.bedrock")
    assert found.content_complete and found.streamed
    assert content(found, "output.messages") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Let me see", "signature": "c2ln"},
                {"type": "text", "content": "It rains"},
                {"type": "tool_call", "id": "t1", "name": "weather", "arguments": {"city": "Rome"}},
            ],
        }
    ]
    assert content(found, "tool.definitions") == [
        {"type": "function", "name": "weather", "description": "", "parameters": {"type": "object"}}
    ]
    assert content(found, "system_instructions") == [{"type": "text", "content": "Be brief."}]
    assert [one["parts"][0]["type"] for one in content(found, "input.messages")] == [
        "text",
        "tool_call",
        "tool_call_response",
    ]
    kept = {name: value for name, value in found.attributes.items() if not isinstance(value, str)}
    assert kept == {
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "playhead.tool.called": ["weather"],
    }
    assert found.request_model == "amazon.nova-micro-v1:0"


def test_an_answer_without_a_stream_says_the_same():
    body = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Let me see", "signature": "c2ln"}}},
                    {"text": "It rains"},
                    {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Rome"}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 8, "outputTokens": 3, "cacheReadInputTokens": 4},
    }
    plain = derive("bedrock.converse", dump(ASKED), whole(body))
    assert converse(*ANSWER).attributes == plain.attributes | {"gen_ai.request.stream": True}


def test_an_exception_in_a_stream():
    found = converse(*ANSWER[:5], exception("throttlingException", "Too many tokens"))
    assert (found.error_type, found.error_message) == ("throttlingException", "Too many tokens")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["error"]


def test_a_cut_stream_is_no_damage():
    stream = b"".join(ANSWER)
    for end in range(0, len(stream), 7):
        found = converse(stream[:end], complete=False)
        assert not found.malformed
        assert not found.content_complete or end > len(b"".join(ANSWER[:11])) - 1


@pytest.mark.parametrize("at", [1, 9, 20, 60, -1])
def test_a_changed_byte_is_found(at: int):
    first = bytearray(ANSWER[4])
    first[at] ^= 1
    found = converse(bytes(first), *ANSWER[5:])
    assert found.malformed and "of the stream" in found.problem


def test_headers_that_lie():
    good = message(b"{}", event_type="x")
    for size in (0, 3, 2**31):
        damaged = size.to_bytes(4, "big") + good[4:]
        assert converse(damaged).malformed
    assert converse(message(b"\xff\xfe", event_type="chunk", message_type="event")).malformed


MESSAGE: dict[str, Any] = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9}


def test_claude_on_bedrock():
    url = "/model/us.anthropic.claude-sonnet-5-v1:0/invoke-with-response-stream"
    request = MESSAGE | {"messages": [{"role": "user", "content": "Hi"}]}
    found = streamed(
        url,
        request,
        chunk(
            {
                "type": "message_start",
                "message": {"id": "msg_bdrk_1", "role": "assistant", "usage": {"input_tokens": 4}},
            }
        ),
        chunk(
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        ),
        chunk(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
        ),
        chunk(
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 2},
            }
        ),
        chunk({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 4}}),
    )
    assert (found.error_type, found.problem, found.malformed) == ("", "", False)
    assert found.content_complete and found.streamed
    assert found.request_model == "us.anthropic.claude-sonnet-5-v1:0"
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert found.attributes["gen_ai.usage.output_tokens"] == 2


TEXTS: list[tuple[str, dict[str, Any], dict[str, Any], str, tuple[int, int]]] = [
    (
        "amazon.titan-text-lite-v1",
        {"inputText": "Hi", "textGenerationConfig": {"maxTokenCount": 9}},
        {
            "inputTextTokenCount": 3,
            "results": [{"tokenCount": 2, "outputText": "Hello", "completionReason": "FINISH"}],
        },
        "bedrock.titan",
        (3, 2),
    ),
    (
        "meta.llama3-1-70b-instruct-v1:0",
        {"prompt": "Hi", "max_gen_len": 9},
        {
            "generation": "Hello",
            "prompt_token_count": 3,
            "generation_token_count": 2,
            "stop_reason": "stop",
        },
        "bedrock.prompt",
        (3, 2),
    ),
    (
        "cohere.command-r-v1:0",
        {"message": "Hi", "max_tokens": 9},
        {"text": "Hello", "finish_reason": "COMPLETE", "generation_id": "g"},
        "bedrock.command_r",
        (3, 2),
    ),
    (
        "mistral.mistral-7b-instruct-v0:2",
        {"prompt": "Hi", "max_tokens": 9},
        {"outputs": [{"text": "Hello", "stop_reason": "stop"}]},
        "bedrock.prompt",
        (3, 2),
    ),
]
COUNTS = [("x-amzn-bedrock-input-token-count", "3"), ("x-amzn-bedrock-output-token-count", "2")]


@pytest.mark.parametrize(("model", "request_", "body", "wire", "used"), TEXTS, ids=lambda v: str(v)[:9])
def test_texts(model: str, request_: Any, body: Any, wire: str, used: tuple[int, int]):
    url = f"https://any.host/model/{model}/invoke"
    assert recognised("POST", url, dump(request_)) == wire
    response = WireResponse(200, COUNTS, [dump(body)], True)
    found = derive(wire, dump(request_), response, url=url)
    assert found.request_model == model
    assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
    assert content(found, "output.messages") == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}
    ]
    at = found.attributes
    assert at["gen_ai.request.max_tokens"] == 9
    assert at["gen_ai.response.finish_reasons"] == ["stop"]
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == used


def test_a_text_model_streams():
    found = streamed(
        "/model/amazon.titan-text-lite-v1/invoke-with-response-stream",
        {"inputText": "Hi"},
        chunk({"outputText": "Hel", "index": 0, "inputTextTokenCount": 3}),
        chunk(
            {
                "outputText": "lo",
                "index": 0,
                "completionReason": "LENGTH",
                "totalOutputTextTokenCount": 2,
            }
        ),
    )
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["length"]
    assert found.attributes["gen_ai.usage.output_tokens"] == 2
    assert found.content_complete and not found.problem


def test_embeddings():
    url = "/model/amazon.titan-embed-text-v2:0/invoke"
    assert recognised("POST", url, dump({"inputText": "Hi"})) == "bedrock.titan_embeddings"
    body = {"embedding": [0.1, 0.2], "inputTextTokenCount": 3}
    found = derive("bedrock.titan_embeddings", dump({"inputText": "Hi"}), whole(body), url=url)
    assert found.operation == "embeddings"
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 2
    assert found.attributes["gen_ai.usage.input_tokens"] == 3


def test_a_refused_request():
    headers = [("x-amzn-ErrorType", "ValidationException:http://internal.amazon.com/")]
    response = WireResponse(400, headers, [b'{"message":"No such model"}'], True)
    found = derive("bedrock.converse", b"{}", response)
    assert (found.error_type, found.error_message) == ("ValidationException", "No such model")
