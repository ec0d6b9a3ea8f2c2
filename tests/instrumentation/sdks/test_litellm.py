"""litellm: one span for a call, whichever client it goes through, and none of that client's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.answers.sdk_answers import Gemini, Said
from support.servers.scripted import (
    ScriptedServer,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_error,
)
from support.tapes.recorded_calls import Recorded

from playhead_semconv import attributes as a

HELLO: Any = [{"role": "user", "content": "Hello"}]
HI = openai_chat.completion("Hi there", model="m-1")
CLAUDE = anthropic_messages.message("Hi there")
GEMINI = Gemini()
SAID = Said("Hi there")

ANSWERS: dict[str, tuple[str, str, Any, Any]] = {
    "openai": ("openai/m-1", "openai.chat", json_reply(HI), chat_sse(HI)),
    "anthropic": (
        "anthropic/m-1",
        "anthropic.messages",
        json_reply(CLAUDE),
        anthropic_sse(CLAUDE),
    ),
    "gemini": ("gemini/m-1", "gemini.generate_content", GEMINI.reply(SAID), GEMINI.stream(SAID)),
}
VECTORS = openai_embeddings.embeddings([[0.5, 0.25]], model="m-1", tokens=3, as_base64=False)
TEXT = {
    "id": "c-1",
    "object": "text_completion",
    "created": 1,
    "model": "m-1",
    "choices": [{"index": 0, "text": "Hi", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}


def ask(name: str, url: str, stream: bool) -> str:
    """Ask through litellm and return the text of the answer."""
    import litellm

    async def read() -> str:
        answer: Any = await litellm.acompletion(
            ANSWERS[name][0],
            messages=HELLO,
            api_base=f"{url}/v1" if name == "openai" else url,
            api_key="k",
            stream=stream,
        )
        if not stream:
            return answer.choices[0].message.content
        return "".join([part.choices[0].delta.content or "" async for part in answer])

    return asyncio.run(read())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_asynchronous_call(name: str, stream: bool, server: ScriptedServer, recorded: Recorded):
    _, wire, whole, streamed = ANSWERS[name]
    server.script([streamed if stream else whole])
    assert ask(name, server.url, stream) == "Hi there"
    span: Any = recorded.call()
    (attempt,) = recorded.attempts()
    said = span.attributes
    assert attempt.parent is not None and attempt.parent.span_id == span.context.span_id
    assert (said[a.PLAYHEAD_WIRE], said[a.GEN_AI_REQUEST_MODEL]) == (wire, "m-1")
    assert (said[a.SERVER_ADDRESS], said[a.SERVER_PORT]) == ("127.0.0.1", server.port)
    assert said[a.GEN_AI_OUTPUT_MESSAGES] == (
        '[{"role":"assistant","parts":[{"type":"text","content":"Hi there"}]}]'
    )
    assert said.get(a.GEN_AI_REQUEST_STREAM, False) is stream
    assert span.name == f"{said[a.GEN_AI_OPERATION_NAME]} m-1"


def test_attempts_of_the_client_below_are_attempts_of_the_call(
    server: ScriptedServer, recorded: Recorded
):
    import litellm

    server.script([openai_error(429), json_reply(HI)])
    litellm.completion(
        "openai/m-1", messages=HELLO, api_base=server.openai_url, api_key="k", max_retries=1
    )
    assert recorded.call().name == "chat m-1"
    resent = [(one.attributes or {}).get(a.HTTP_REQUEST_RESEND_COUNT) for one in recorded.attempts()]
    assert resent == [None, 1]


@pytest.mark.parametrize(
    ("function", "fields", "answer", "operation"),
    [
        ("embedding", {"input": ["Hello"]}, VECTORS, "embeddings"),
        ("text_completion", {"prompt": "Hello"}, TEXT, "text_completion"),
    ],
)
def test_a_call_beside_chat(
    function: str, fields: Any, answer: Any, operation: str, server: ScriptedServer, recorded: Recorded
):
    import litellm

    server.script([json_reply(answer)])
    where: Any = {"model": "openai/m-1", "api_base": server.openai_url, "api_key": "k"}
    getattr(litellm, function)(**where, **fields)
    span: Any = recorded.call()
    assert (span.name, len(recorded.attempts())) == (f"{operation} m-1", 1)
    assert span.attributes[a.GEN_AI_USAGE_INPUT_TOKENS] == 3


def test_an_answer_that_nobody_was_asked_for(recorded: Recorded):
    import litellm

    litellm.completion("openai/m-1", messages=HELLO, mock_response="Hi there")
    span = recorded.call()
    assert (span.name, recorded.attempts()) == ("chat openai/m-1", [])
