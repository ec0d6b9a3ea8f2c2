"""Cohere's chat and embeddings, version 2."""

from typing import Any

from support.answers.wires import content, derived, dump, sse, stream, whole

from playhead_genai.providers import recognised

ASKED: dict[str, Any] = {"model": "command-a", "messages": [{"role": "user", "content": "Hi"}], "k": 3}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
WHOLE = {
    "id": "r1",
    "finish_reason": "TOOL_CALL",
    "message": {
        "role": "assistant",
        "tool_plan": "I call f",
        "content": [{"type": "text", "text": "Hello"}],
        "tool_calls": [CALL],
    },
    "usage": {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 60, "output_tokens": 4}},
}


def delta(kind: str, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": 0, "delta": {"message": message}}


def test_a_chat():
    assert recognised("POST", "https://any.host/v2/chat", dump(ASKED)) == "cohere.chat"
    plain = derived("cohere.chat", ASKED, whole(WHOLE))
    assert plain.provider == "cohere"
    assert content(plain, "output.messages")[0]["parts"] == [
        {"type": "reasoning", "content": "I call f", "tool_plan": True},
        {"type": "text", "content": "Hello"},
        {"type": "tool_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]
    at = plain.attributes
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (60, 4)
    assert (at["gen_ai.response.finish_reasons"], at["gen_ai.request.top_k"]) == (["tool_call"], 3)
    chunks = sse(
        {
            "id": "r1",
            "type": "message-start",
            "delta": {"message": {"role": "assistant", "content": []}},
        },
        delta("tool-plan-delta", tool_plan="I call "),
        delta("tool-plan-delta", tool_plan="f"),
        delta("content-start", content={"type": "text", "text": ""}),
        delta("content-delta", content={"text": "Hel"}),
        delta("content-delta", content={"text": "lo"}),
        delta("tool-call-start", tool_calls=CALL | {"function": {"name": "f", "arguments": ""}}),
        delta("tool-call-delta", tool_calls={"function": {"arguments": '{"a":1}'}}),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": WHOLE["usage"]}},
    )
    streamed = derived("cohere.chat", ASKED, stream(*chunks))
    assert streamed.attributes == plain.attributes | {"gen_ai.request.stream": True}
    cut = derived("cohere.chat", ASKED, stream(*chunks[:6], complete=False))
    assert cut.attributes["gen_ai.response.finish_reasons"] == ["error"]


def test_embeddings():
    request = {"model": "embed-v4.0", "texts": ["a"], "embedding_types": ["float"]}
    assert recognised("POST", "/v2/embed", dump(request)) == "cohere.embed"
    body = {"id": "e", "embeddings": {"float": [[1, 2]]}, "meta": {"billed_units": {"input_tokens": 3}}}
    found = derived("cohere.embed", request, whole(body))
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 2
    assert found.attributes["gen_ai.usage.input_tokens"] == 3


def test_a_refusal():
    found = derived("cohere.chat", ASKED, whole({"id": "x", "message": "invalid api token"}, 401))
    assert (found.error_type, found.error_message) == ("401", "invalid api token")
