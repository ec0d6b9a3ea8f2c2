"""Gemini, on both its hosts and at any other: contents, streams, embeddings."""

from typing import Any

import pytest
from support.answers.wires import content, dump, sse, stream, whole

from playhead_genai.providers import WireResponse, derive, recognised, span_attributes

WIRE = "gemini.generate_content"
ASKED: dict[str, Any] = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "What is this?"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"file_data": {"mime_type": "application/pdf", "file_uri": "gs://b/a.pdf"}},
            ],
        },
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"a": "cat"}}}]},
    ],
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [
        {
            "functionDeclarations": [
                {"name": "look", "description": "", "parameters": {"type": "OBJECT"}}
            ]
        },
        {"googleSearch": {}},
    ],
    "generationConfig": {
        "maxOutputTokens": 9,
        "temperature": 0,
        "topK": 5,
        "candidateCount": 1,
        "responseMimeType": "application/json",
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    },
}
USAGE = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 4,
    "toolUsePromptTokenCount": 2,
    "cachedContentTokenCount": 6,
    "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 8},
        {"modality": "IMAGE", "tokenCount": 2},
    ],
}
PIECES: list[dict[str, Any]] = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm", "thought": True}]}}]},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "m", "thought": True}]}}]},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "A "}]}}]},
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "cat"}]}}]},
    {
        "candidates": [
            {
                "content": {"parts": [{"functionCall": {"id": "f1", "name": "look", "args": {}}}]},
                "finishReason": "STOP",
                "citationMetadata": {"citations": [{"uri": "https://example.org"}]},
            }
        ],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r1",
    },
]
WHOLE = {
    **PIECES[-1],
    "candidates": [
        {
            **PIECES[-1]["candidates"][0],
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hmm", "thought": True},
                    {"text": "A cat"},
                    {"functionCall": {"id": "f1", "name": "look", "args": {}}},
                ],
            },
        }
    ],
}
HOSTS = [
    ("https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash", "gcp.gemini"),
    (
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash",
        "gcp.vertex_ai",
    ),
    ("http://127.0.0.1:9/models/gemini-2.5-flash", "gcp.gen_ai"),
]


@pytest.mark.parametrize(("base", "provider"), HOSTS)
def test_at_any_host(base: str, provider: str):
    for action in ("generateContent", "streamGenerateContent"):
        assert recognised("POST", f"{base}:{action}?alt=sse", dump(ASKED)) == WIRE
    url = f"{base}:generateContent"
    found = derive(WIRE, dump(ASKED), whole(WHOLE), url=url)
    said = span_attributes(WIRE, found, base.split("/")[2].partition(":")[0], None)
    assert said["gen_ai.provider.name"] == provider
    assert said["gen_ai.request.model"] == "gemini-2.5-flash"
    assert said["gen_ai.operation.name"] == "generate_content"


def test_the_attributes():
    found = derive(WIRE, dump(ASKED), whole(WHOLE))
    kept = {
        name: value for name, value in found.attributes.items() if not str(value).startswith(("[{", "{"))
    }
    assert kept == {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.top_k": 5,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "r1",
        "gen_ai.response.model": "gemini-2.5-flash",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 6,
        "gen_ai.usage.text.input_tokens": 8,
        "gen_ai.usage.image.input_tokens": 2,
        "playhead.tool.called": ["look"],
    }
    assert content(found, "input.messages") == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "What is this?"},
                {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "AAAA"},
                {
                    "type": "uri",
                    "mime_type": "application/pdf",
                    "modality": "document",
                    "uri": "gs://b/a.pdf",
                },
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "tool_call",
                    "name": "look",
                    "arguments": {"at": 1},
                    "thoughtSignature": "c2ln",
                }
            ],
        },
        {
            "role": "user",
            "parts": [{"type": "tool_call_response", "response": {"a": "cat"}, "name": "look"}],
        },
    ]
    assert content(found, "output.messages") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hmm"},
                {"type": "text", "content": "A cat"},
                {"type": "tool_call", "id": "f1", "name": "look", "arguments": {}},
            ],
            "citationMetadata": {"citations": [{"uri": "https://example.org"}]},
        }
    ]
    assert content(found, "tool.definitions") == [
        {"type": "function", "name": "look", "description": "", "parameters": {"type": "OBJECT"}},
        {"type": "googleSearch", "name": "googleSearch"},
    ]


def test_streams_say_the_same():
    plain = derive(WIRE, dump(ASKED), whole(WHOLE)).attributes | {"gen_ai.request.stream": True}
    events = derive(WIRE, dump(ASKED), stream(*sse(*PIECES)))
    assert (events.attributes, events.problem, events.content_complete) == (plain, "", True)
    url = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
    body = b"[" + b",\r\n".join(dump(one) for one in PIECES) + b"]"
    headers = [("content-type", "application/json")]
    listed = derive(WIRE, dump(ASKED), WireResponse(200, headers, [body], True), url=url)
    assert (listed.attributes, listed.problem, listed.content_complete) == (plain, "", True)
    cut = derive(WIRE, dump(ASKED), WireResponse(200, headers, [body[:-40]], False), url=url)
    assert not cut.content_complete
    assert cut.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert content(cut, "output.messages")[0]["parts"][1] == {"type": "text", "content": "A cat"}


def test_a_blocked_prompt_and_an_error():
    blocked = derive(WIRE, dump(ASKED), whole({"promptFeedback": {"blockReason": "SAFETY"}}))
    assert blocked.attributes["gen_ai.response.finish_reasons"] == ["content_filter"]
    error = {"error": {"code": 400, "message": "Bad role", "status": "INVALID_ARGUMENT"}}
    failed = derive(WIRE, dump(ASKED), whole(error, 400))
    assert (failed.error_type, failed.error_message) == ("INVALID_ARGUMENT", "Bad role")


def test_embeddings():
    text = {"parts": [{"text": "Hi"}]}
    url = "https://any.host/v1beta/models/gemini-embedding-001"
    cases: list[tuple[str, Any, Any]] = [
        ("embedContent", {"content": text}, {"embedding": {"values": [0.1, 0.2]}}),
        (
            "batchEmbedContents",
            {"requests": [{"model": "models/x", "content": text}]},
            {"embeddings": [{"values": [0.1, 0.2]}]},
        ),
        (
            "predict",
            {"instances": [{"content": "Hi"}]},
            {"predictions": [{"embeddings": {"values": [0.1, 0.2], "statistics": {"token_count": 3}}}]},
        ),
    ]
    for action, request, body in cases:
        wire = recognised("POST", f"{url}:{action}", dump(request))
        assert wire is not None
        found = derive(wire, dump(request), whole(body), url=f"{url}:{action}")
        assert (found.operation, found.request_model) == ("embeddings", "gemini-embedding-001")
        assert found.attributes["gen_ai.embeddings.dimension.count"] == 2
        assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
