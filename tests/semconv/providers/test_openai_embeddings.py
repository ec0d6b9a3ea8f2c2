"""Embeddings: exact attributes."""

import base64
import struct
from typing import Any

import pytest
from support.answers.wires import content, derived, whole

from playhead_genai.providers import Derived


def test_request_and_answer():
    body = {
        "object": "list",
        "model": "text-embedding-3-small",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2, 0.3]}],
        "usage": {"prompt_tokens": 5, "total_tokens": 5},
    }
    request = {"model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": "float"}
    assert derived("openai.embeddings", request, whole(body)) == Derived(
        operation="embeddings",
        request_model="text-embedding-3-small",
        attributes={
            "gen_ai.operation.name": "embeddings",
            "gen_ai.request.model": "text-embedding-3-small",
            "gen_ai.request.encoding_formats": ["float"],
            "gen_ai.input.messages": (
                '[{"role":"user","parts":[{"type":"text","content":"a"}]},'
                '{"role":"user","parts":[{"type":"text","content":"b"}]}]'
            ),
            "gen_ai.response.model": "text-embedding-3-small",
            "gen_ai.embeddings.dimension.count": 3,
            "gen_ai.usage.input_tokens": 5,
        },
        content_complete=True,
    )


@pytest.mark.parametrize("count", [1, 2, 3, 256, 1536])
def test_dimension_of_base64_vectors(count: int):
    vector = base64.b64encode(struct.pack(f"<{count}f", *range(count))).decode()
    found = derived("openai.embeddings", {"input": "a"}, whole({"data": [{"embedding": vector}]}))
    assert found.attributes["gen_ai.embeddings.dimension.count"] == count


def test_the_dimension_that_was_asked_for():
    found = derived("openai.embeddings", {"dimensions": 8}, whole({"data": [{"embedding": [1.0]}]}))
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 8


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one", [[{"type": "text", "content": "one"}]]),
        ([1, 2], [[{"type": "tokens", "tokens": [1, 2]}]]),
        ([[1], [2, 3]], [[{"type": "tokens", "tokens": [1]}], [{"type": "tokens", "tokens": [2, 3]}]]),
    ],
)
def test_inputs(value: Any, expected: Any):
    messages = content(derived("openai.embeddings", {"input": value}), "input.messages")
    assert [message["parts"] for message in messages] == expected


def test_an_error_body():
    error = {"message": "Incorrect API key", "type": "invalid_request_error", "code": "invalid_api_key"}
    found = derived("openai.embeddings", {"input": "a"}, whole({"error": error}, 401))
    assert (found.error_type, found.error_message) == ("invalid_api_key", "Incorrect API key")
