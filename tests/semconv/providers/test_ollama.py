"""Ollama's own API."""

from typing import Any

from support.answers.wires import content, dump, whole

from playhead_genai.providers import WireResponse, derive, recognised

LINES: list[dict[str, Any]] = [
    {"model": "qwen3", "message": {"role": "assistant", "content": "", "thinking": "Hm"}, "done": False},
    {"model": "qwen3", "message": {"role": "assistant", "content": "Hel"}, "done": False},
    {"model": "qwen3", "message": {"role": "assistant", "content": "lo"}, "done": False},
    {
        "model": "qwen3",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 7,
    },
]
ASKED: dict[str, Any] = {
    "model": "qwen3",
    "messages": [{"role": "user", "content": "Hi", "images": ["AAAA"]}],
    "options": {"num_predict": 9, "temperature": 0.5},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
LINED = [("content-type", "application/x-ndjson")]


def test_a_chat_in_lines():
    url = "http://localhost:11434/api/chat"
    assert recognised("POST", url, dump(ASKED)) == "ollama.chat"
    body = b"".join(dump(line) + b"\n" for line in LINES)
    found = derive("ollama.chat", dump(ASKED), WireResponse(200, LINED, [body], True), url=url)
    assert (found.problem, found.content_complete, found.streamed) == ("", True, True)
    assert (found.provider, found.request_model) == ("ollama", "qwen3")
    assert content(found, "output.messages") == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm"},
                {"type": "text", "content": "Hello"},
                {"type": "tool_call", "name": "f", "arguments": {}},
            ],
        }
    ]
    at = found.attributes
    assert (at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]) == (5, 7)
    assert at["gen_ai.response.finish_reasons"] == ["stop"]
    assert at["gen_ai.response.model"] == "qwen3"
    for end in range(0, len(body) - 3, 11):
        cut = derive("ollama.chat", dump(ASKED), WireResponse(200, LINED, [body[:end]], False))
        assert not cut.content_complete and not cut.malformed


def test_generate_and_embed():
    request = {"model": "qwen3", "prompt": "Hi", "system": "Be brief."}
    assert recognised("POST", "/api/generate", dump(request)) == "ollama.generate"
    body = {
        "model": "qwen3",
        "response": "Hello",
        "done": True,
        "done_reason": "length",
        "eval_count": 2,
    }
    found = derive("ollama.generate", dump(request), whole(body))
    assert content(found, "output.messages")[0]["parts"] == [{"type": "text", "content": "Hello"}]
    assert found.attributes["gen_ai.response.finish_reasons"] == ["length"]
    texts = {"model": "all-minilm", "input": ["a", "b"]}
    assert recognised("POST", "/api/embed", dump(texts)) == "ollama.embed"
    vectors = {"model": "all-minilm", "embeddings": [[1, 2, 3], [4, 5, 6]], "prompt_eval_count": 2}
    found = derive("ollama.embed", dump(texts), whole(vectors))
    assert found.attributes["gen_ai.embeddings.dimension.count"] == 3


def test_an_error():
    found = derive("ollama.chat", dump(ASKED), whole({"error": "model not found"}, 404))
    assert (found.error_type, found.error_message) == ("404", "model not found")
