"""Calls that make no message: tokens are counted, a response is fetched; and plain completions."""

from typing import Any

from support.wires import DONE, content, derived, dump, sse, stream, whole

from playhead_semconv.wire import derive, recognised


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
