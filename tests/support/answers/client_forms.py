"""Every form in which the SDKs are called, sync and async, and its meaning on the wire.

A form's `run` makes the call and reads the answer to its end; for async forms it is a coroutine. Forms
that an installed (old) SDK does not have are left out of `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import anthropic
import openai
import pydantic
from support.servers.scripted import (
    Reply,
    ScriptedServer,
    anthropic_error,
    anthropic_messages,
    anthropic_sse,
    chat_sse,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_error,
    openai_responses,
    responses_sse,
)

SDK = Literal["openai", "anthropic"]


class Answer(pydantic.BaseModel):
    """What the parse forms ask for."""

    city: str


JSON_TEXT = '{"city":"Oslo"}'
MESSAGES: list[Any] = [{"role": "user", "content": "Hello"}]
CHAT: dict[str, Any] = {"model": "gpt-4o", "messages": MESSAGES}
RESPONSES: dict[str, Any] = {"model": "gpt-5", "input": "Hello"}
CLAUDE: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 64, "messages": MESSAGES}
EMBEDDINGS: dict[str, Any] = {"model": "text-embedding-3-small", "input": "Hello"}
MODELS = {
    "openai.chat": "gpt-4o",
    "openai.responses": "gpt-5",
    "openai.embeddings": "text-embedding-3-small",
    "anthropic.messages": "claude-sonnet-5",
}
PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "openai.embeddings": "/v1/embeddings",
    "anthropic.messages": "/v1/messages",
}


@dataclass(frozen=True)
class Form:
    """One way to make a call."""

    name: str
    wire: str
    run: Callable[[Any], Any]
    streamed: bool = False
    text: str = "Hi there"
    asynchronous: bool = False

    @property
    def sdk(self) -> SDK:
        """Name of the SDK."""
        return "anthropic" if self.wire.startswith("anthropic") else "openai"

    @property
    def model(self) -> str:
        """The requested model."""
        return MODELS[self.wire]

    @property
    def path(self) -> str:
        """Path of the request."""
        return PATHS[self.wire]

    def client(self, server: ScriptedServer, **settings: Any) -> Any:
        """A client for ``server``; it retries twice."""
        if self.sdk == "openai":
            kind: Any = openai.AsyncOpenAI if self.asynchronous else openai.OpenAI
            return kind(base_url=server.openai_url, api_key="sk-test", **settings)
        kind = anthropic.AsyncAnthropic if self.asynchronous else anthropic.Anthropic
        return kind(base_url=server.url, api_key="sk-ant-test", **settings)

    def reply(self, **fields: Any) -> Reply:
        """A successful answer."""
        if self.wire == "openai.chat":
            whole = openai_chat.completion(self.text)
            return chat_sse(whole, **fields) if self.streamed else json_reply(whole, **fields)
        if self.wire == "openai.responses":
            whole = openai_responses.response([openai_responses.message(self.text)])
            return responses_sse(whole, **fields) if self.streamed else json_reply(whole, **fields)
        if self.wire == "openai.embeddings":
            return json_reply(openai_embeddings.embeddings([[1.0, 2.0]]), **fields)
        whole = anthropic_messages.message(self.text)
        return anthropic_sse(whole, **fields) if self.streamed else json_reply(whole, **fields)

    def error(self, status: int) -> Reply:
        """An error answer."""
        return openai_error(status) if self.sdk == "openai" else anthropic_error(status)

    def __str__(self) -> str:
        return f"{'async ' if self.asynchronous else ''}{self.name}"


def _read(stream: Any) -> None:
    for _ in stream:
        pass


async def _aread(stream: Any) -> None:
    async for _ in stream:
        pass


def _helper(manager: Any) -> None:
    with manager as stream:
        _read(stream)


async def _ahelper(manager: Any) -> None:
    async with manager as stream:
        await _aread(stream)


def _raw(response: Any) -> None:
    response.parse()


def _raw_stream(response: Any) -> None:
    _read(response.parse())


async def _araw_stream(response: Any) -> None:
    await _aread(response.parse())


def _streaming_response(manager: Any) -> None:
    with manager as response:
        response.read()


async def _astreaming_response(manager: Any) -> None:
    async with manager as response:
        await response.read()


def _sync_forms() -> list[Form]:
    chat, responses, claude = "openai.chat", "openai.responses", "anthropic.messages"
    return [
        Form("chat create", chat, lambda c: c.chat.completions.create(**CHAT)),
        Form(
            "chat create stream",
            chat,
            lambda c: _read(c.chat.completions.create(**CHAT, stream=True)),
            streamed=True,
        ),
        Form(
            "chat stream",
            chat,
            lambda c: _helper(c.chat.completions.stream(**CHAT)),
            streamed=True,
        ),
        Form(
            "chat parse",
            chat,
            lambda c: c.chat.completions.parse(**CHAT, response_format=Answer),
            text=JSON_TEXT,
        ),
        Form("chat raw", chat, lambda c: _raw(c.chat.completions.with_raw_response.create(**CHAT))),
        Form(
            "chat raw stream",
            chat,
            lambda c: _raw_stream(c.chat.completions.with_raw_response.create(**CHAT, stream=True)),
            streamed=True,
        ),
        Form(
            "chat streaming response",
            chat,
            lambda c: _streaming_response(c.chat.completions.with_streaming_response.create(**CHAT)),
        ),
        Form("chat post", chat, lambda c: c.post("/chat/completions", cast_to=object, body=CHAT)),
        Form("responses create", responses, lambda c: c.responses.create(**RESPONSES)),
        Form(
            "responses create stream",
            responses,
            lambda c: _read(c.responses.create(**RESPONSES, stream=True)),
            streamed=True,
        ),
        Form(
            "responses stream",
            responses,
            lambda c: _helper(c.responses.stream(**RESPONSES)),
            streamed=True,
        ),
        Form(
            "responses parse",
            responses,
            lambda c: c.responses.parse(**RESPONSES, text_format=Answer),
            text=JSON_TEXT,
        ),
        Form(
            "responses raw",
            responses,
            lambda c: _raw(c.responses.with_raw_response.create(**RESPONSES)),
        ),
        Form("embeddings create", "openai.embeddings", lambda c: c.embeddings.create(**EMBEDDINGS)),
        Form("messages create", claude, lambda c: c.messages.create(**CLAUDE)),
        Form(
            "messages create stream",
            claude,
            lambda c: _read(c.messages.create(**CLAUDE, stream=True)),
            streamed=True,
        ),
        Form("messages stream", claude, lambda c: _helper(c.messages.stream(**CLAUDE)), streamed=True),
        Form(
            "messages parse",
            claude,
            lambda c: c.messages.parse(**CLAUDE, output_format=Answer),
            text=JSON_TEXT,
        ),
        Form("messages raw", claude, lambda c: _raw(c.messages.with_raw_response.create(**CLAUDE))),
        Form(
            "messages raw stream",
            claude,
            lambda c: _raw_stream(c.messages.with_raw_response.create(**CLAUDE, stream=True)),
            streamed=True,
        ),
        Form(
            "messages streaming response",
            claude,
            lambda c: _streaming_response(c.messages.with_streaming_response.create(**CLAUDE)),
        ),
        Form("messages post", claude, lambda c: c.post("/v1/messages", cast_to=object, body=CLAUDE)),
        Form("beta messages create", claude, lambda c: c.beta.messages.create(**CLAUDE)),
        Form(
            "beta messages create stream",
            claude,
            lambda c: _read(c.beta.messages.create(**CLAUDE, stream=True)),
            streamed=True,
        ),
        Form(
            "beta messages stream",
            claude,
            lambda c: _helper(c.beta.messages.stream(**CLAUDE)),
            streamed=True,
        ),
    ]


def _async_forms() -> list[Form]:
    chat, responses, claude = "openai.chat", "openai.responses", "anthropic.messages"

    async def chat_stream(c: Any) -> None:
        await _aread(await c.chat.completions.create(**CHAT, stream=True))

    async def chat_raw(c: Any) -> None:
        (await c.chat.completions.with_raw_response.create(**CHAT)).parse()

    async def chat_raw_stream(c: Any) -> None:
        await _araw_stream(await c.chat.completions.with_raw_response.create(**CHAT, stream=True))

    async def responses_stream(c: Any) -> None:
        await _aread(await c.responses.create(**RESPONSES, stream=True))

    async def messages_stream(c: Any) -> None:
        await _aread(await c.messages.create(**CLAUDE, stream=True))

    async def messages_raw(c: Any) -> None:
        parsed: Any = (await c.messages.with_raw_response.create(**CLAUDE)).parse()
        if hasattr(parsed, "__await__"):
            await parsed

    async def beta_stream(c: Any) -> None:
        await _aread(await c.beta.messages.create(**CLAUDE, stream=True))

    made = [
        Form("chat create", chat, lambda c: c.chat.completions.create(**CHAT)),
        Form("chat create stream", chat, chat_stream, streamed=True),
        Form("chat stream", chat, lambda c: _ahelper(c.chat.completions.stream(**CHAT)), streamed=True),
        Form(
            "chat parse",
            chat,
            lambda c: c.chat.completions.parse(**CHAT, response_format=Answer),
            text=JSON_TEXT,
        ),
        Form("chat raw", chat, chat_raw),
        Form("chat raw stream", chat, chat_raw_stream, streamed=True),
        Form(
            "chat streaming response",
            chat,
            lambda c: _astreaming_response(c.chat.completions.with_streaming_response.create(**CHAT)),
        ),
        Form("chat post", chat, lambda c: c.post("/chat/completions", cast_to=object, body=CHAT)),
        Form("responses create", responses, lambda c: c.responses.create(**RESPONSES)),
        Form("responses create stream", responses, responses_stream, streamed=True),
        Form(
            "responses stream",
            responses,
            lambda c: _ahelper(c.responses.stream(**RESPONSES)),
            streamed=True,
        ),
        Form(
            "responses parse",
            responses,
            lambda c: c.responses.parse(**RESPONSES, text_format=Answer),
            text=JSON_TEXT,
        ),
        Form("embeddings create", "openai.embeddings", lambda c: c.embeddings.create(**EMBEDDINGS)),
        Form("messages create", claude, lambda c: c.messages.create(**CLAUDE)),
        Form("messages create stream", claude, messages_stream, streamed=True),
        Form("messages stream", claude, lambda c: _ahelper(c.messages.stream(**CLAUDE)), streamed=True),
        Form(
            "messages parse",
            claude,
            lambda c: c.messages.parse(**CLAUDE, output_format=Answer),
            text=JSON_TEXT,
        ),
        Form("messages raw", claude, messages_raw),
        Form(
            "messages streaming response",
            claude,
            lambda c: _astreaming_response(c.messages.with_streaming_response.create(**CLAUDE)),
        ),
        Form("messages post", claude, lambda c: c.post("/v1/messages", cast_to=object, body=CLAUDE)),
        Form("beta messages create", claude, lambda c: c.beta.messages.create(**CLAUDE)),
        Form("beta messages create stream", claude, beta_stream, streamed=True),
        Form(
            "beta messages stream",
            claude,
            lambda c: _ahelper(c.beta.messages.stream(**CLAUDE)),
            streamed=True,
        ),
    ]
    return [Form(f.name, f.wire, f.run, f.streamed, f.text, True) for f in made]


def _missing() -> set[str]:
    """Names of forms that the installed SDKs do not have."""
    gone: set[str] = set()
    if not hasattr(openai.resources.chat.completions.Completions, "parse"):
        gone |= {"chat parse", "chat stream"}
    if not hasattr(anthropic.resources.messages.Messages, "parse"):
        gone.add("messages parse")
    return gone


FORMS = [form for form in _sync_forms() + _async_forms() if form.name not in _missing()]
STREAMS = [form for form in FORMS if form.streamed]
