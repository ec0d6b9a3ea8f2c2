"""Calls that make no message: tokens are counted, a response is fetched; and plain completions."""

from typing import Any

from support.answers.wires import DONE, content, derived, dump, sse, stream, whole

from playhead_genai.providers import derive, recognised


def test_tokens_are_counted():
    request = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "Hi"}]}
    url = "https://any.host/v1/messages/count_tokens"
    assert recognised("POST", url, dump(request)) == "anthropic.count_tokens"
    found = derived("anthropic.count_tokens", request, whole({"input_tokens": 14}))
    assert found.operation == "count_tokens"
    assert not [name for name in found.attributes if name.startswith("gen_ai.usage.")]
    assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]


def test_a_response_is_fetched():
    url = "https://any.host/v1/responses/resp_1?stream=false"
    assert recognised("GET", url, b"") == "openai.fetched_response"
    assert recognised("GET", "https://forms.corp/responses/17", b"") is None
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    body: Any = {
        "id": "resp_1",
        "status": "completed",
        "model": "m",
        "output": [said],
        "usage": {"input_tokens": 3},
    }
    found = derive("openai.fetched_response", b"", whole(body), url=url)
    assert (found.operation, found.problem) == ("fetch_response", "")
    assert found.attributes["gen_ai.response.id"] == "resp_1"
    assert "gen_ai.usage.input_tokens" not in found.attributes
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
    made = derive("openai.fetched_response", b"", whole({**body, "background": True}), url=url)
    assert made.attributes["gen_ai.usage.input_tokens"] == 3
    waiting = derive("openai.fetched_response", b"", whole({"id": "resp_1", "status": "queued"}))
    assert "gen_ai.response.finish_reasons" not in waiting.attributes


def test_completions():
    request = {"model": "m", "prompt": "Once", "max_tokens": 9}
    assert (
        recognised("POST", "http://localhost:8000/v1/completions", dump(request)) == "openai.completions"
    )
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    chunks = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "text": " upon"}]},
        {"id": "c", "model": "m", "choices": [{"index": 0, "text": " a", "finish_reason": "length"}]},
        {"id": "c", "model": "m", "choices": [], "usage": usage},
    ]
    choice = {"index": 0, "text": " upon a", "finish_reason": "length"}
    plain = derived(
        "openai.completions",
        request,
        whole({"id": "c", "model": "m", "choices": [choice], "usage": usage}),
    )
    assert content(plain, "output.messages")[0]["parts"] == [{"type": "text", "content": " upon a"}]
    assert plain.attributes["gen_ai.usage.output_tokens"] == 2
    streamed = derived("openai.completions", request, stream(*sse(*chunks), DONE))
    assert streamed.attributes == plain.attributes | {"gen_ai.request.stream": True}


def test_contents_are_counted():
    url = "https://any.host/v1beta/models/gemini-3-pro:countTokens"
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    inner = {"contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}}
    for request in (inner, {"generateContentRequest": inner}):
        assert recognised("POST", url, dump(request)) == "gemini.count_tokens"
        found = derive("gemini.count_tokens", dump(request), whole({"totalTokens": 14}), url=url)
        assert (found.operation, found.request_model) == ("count_tokens", "gemini-3-pro")
        assert not [name for name in found.attributes if name.startswith("gen_ai.usage.")]
        assert content(found, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]
        assert content(found, "system_instructions")[0]["content"] == "Be brief."


def test_several_texts_are_embedded():
    url = "https://any.host/v1beta/models/gemini-embedding-001:batchEmbedContents"
    one = {"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "Hi"}]}}
    request = {"requests": [one | {"outputDimensionality": 3}] * 2}
    assert recognised("POST", url, dump(request)) == "gemini.batch_embed_contents"
    answer = {"embeddings": [{"values": [1, 2, 3]}, {"values": [1, 2, 3]}]}
    found = derive("gemini.batch_embed_contents", dump(request), whole(answer), url=url)
    assert (found.operation, found.request_model) == ("embeddings", "gemini-embedding-001")
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 3
    assert len(content(found, "input.messages")) == 2


def test_moderation():
    image = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    request: Any = {"model": "omni-moderation-latest", "input": [{"type": "text", "text": "Hi"}, image]}
    assert recognised("POST", "/v1/moderations", dump(request)) == "openai.moderation"
    verdict = {
        "flagged": True,
        "categories": {"hate": False, "violence": True},
        "category_scores": {"hate": 0.1, "violence": 0.9},
    }
    found = derived(
        "openai.moderation", request, whole({"id": "modr-1", "model": "omni", "results": [verdict]})
    )
    assert (found.operation, found.problem) == ("moderation", "")
    kinds = [message["parts"][0]["type"] for message in content(found, "input.messages")]
    assert kinds == ["text", "uri"]
    (part,) = content(found, "output.messages")[0]["parts"]
    assert (part["type"], part["flagged"], part["categories"]) == ("moderation", True, ["violence"])
    text = derived("openai.moderation", {"input": "Hi"}, whole({"results": [verdict]}))
    assert content(text, "input.messages")[0]["parts"] == [{"type": "text", "content": "Hi"}]


def test_a_conversation_is_compacted():
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    request = {"model": "gpt-6", "input": [said], "instructions": "Be brief."}
    assert recognised("POST", "/v1/responses/compact", dump(request)) == "openai.compaction"
    kept = {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"}
    usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
    answer = {"id": "resp_1", "object": "response.compaction", "output": [said, kept], "usage": usage}
    found = derived("openai.compaction", request, whole(answer))
    assert found.operation == "chat"
    (part,) = content(found, "output.messages")[0]["parts"]
    assert (part["type"], part["id"]) == ("compaction", "cmp_1")
    assert found.attributes["gen_ai.response.finish_reasons"] == ["compaction"]
    assert found.attributes["gen_ai.conversation.compacted"] is True
    assert found.attributes["gen_ai.usage.output_tokens"] == 4


def test_texts_are_embedded_by_hugging_face():
    url = (
        "https://router.huggingface.co/hf-inference/models/intfloat/e5-small/pipeline/feature-extraction"
    )
    request = {"inputs": ["Hi", "Ho"], "normalize": True}
    wire = "hugging_face.feature_extraction"
    assert recognised("POST", url, dump(request)) == wire
    found = derive(wire, dump(request), whole([[0.5, 0.25, 1.0], [1, 2, 3]]), url=url)
    assert (found.operation, found.request_model) == ("embeddings", "intfloat/e5-small")
    assert (found.provider, found.problem, found.content_complete) == ("hugging_face", "", True)
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 3
    texts = [message["parts"][0]["content"] for message in content(found, "input.messages")]
    assert texts == ["Hi", "Ho"]
    tokens = derive(wire, dump(request), whole([[[0.5, 0.25], [1, 2]]]), url=url)
    assert tokens.attributes["gen_ai.embeddings.dimension.count"] == 2
    refused = derive(wire, dump(request), whole({"error": "Model is loading"}, 503), url=url)
    assert (refused.error_type, refused.error_message) == ("503", "Model is loading")
    broken = derive(wire, dump(request), whole({"error": "No"}), url=url)
    assert (broken.error_type, broken.malformed) == ("_OTHER", False)
