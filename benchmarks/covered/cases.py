"""The calls of each case, with the real SDK. Each gets the URL of its own answers.

A case may raise what the SDK raises, and returns what a program would hold on to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

from covered.words import ASKED, DEFINED, HISTORY, IMAGE, RESULT, SCHEMA, SYSTEM

Case = Callable[[str], Any]
PARAMETERS: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Any = {"name": "f", "description": DEFINED, "parameters": PARAMETERS}
TOOLS: Any = [{"type": "function", "function": TOOL}]
CALLED: Any = {
    "id": "call_0",
    "type": "function",
    "function": {"name": "f", "arguments": json.dumps({"city": HISTORY})},
}
MESSAGES: Any = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": "", "tool_calls": [CALLED]},
    {"role": "tool", "tool_call_id": "call_0", "content": RESULT},
]
PICTURE = f"data:image/png;base64,{IMAGE}"
LEFT_AT = 4
"""So many events are taken of a stream that is left."""


def all_of(stream: Any) -> None:
    for _ in stream:
        pass


def left(stream: Any, close: bool) -> Any:
    """A stream of which some events are read: closed, or held."""
    events = iter(stream)
    all_of(islice(events, LEFT_AT))
    if close:
        (getattr(stream, "close", None) or events.close)()
    return stream, events


def common(call: Callable[..., Any], stream: Callable[[str], Any]) -> dict[str, Case]:
    """The cases of every SDK."""
    return {
        "call": call,
        "stream": lambda url: all_of(stream(url)),
        "tools": lambda url: all_of(stream(url)),
        "retry": call,
        "error": call,
        "truncated": lambda url: all_of(stream(url)),
        "abandoned": lambda url: left(stream(url), close=False),
        "closed": lambda url: left(stream(url), close=True),
    }


def of_openai() -> dict[str, Case]:
    import openai

    def client(url: str) -> Any:
        return openai.OpenAI(base_url=url, api_key="test", max_retries=1)

    def chat(url: str, **more: Any) -> Any:
        asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}
        return client(url).chat.completions.create(**asked | more)

    def stream(url: str, **more: Any) -> Any:
        return chat(url, stream=True, stream_options={"include_usage": True}, **more)

    def image(url: str) -> Any:
        part = {"type": "image_url", "image_url": {"url": PICTURE}}
        return chat(url, messages=[{"role": "user", "content": [part]}])

    def structured(url: str) -> Any:
        from pydantic import create_model

        form = create_model(SCHEMA, city=(str, ...))
        return client(url).chat.completions.parse(model="m-1", messages=MESSAGES, response_format=form)

    def responses(url: str, **more: Any) -> Any:
        tools = [{"type": "function", "strict": False, **TOOL}]
        asked: Any = {"model": "m-1", "instructions": SYSTEM, "input": ASKED, "tools": tools}
        return client(url).responses.create(**asked | more)

    return common(chat, stream) | {
        "embeddings": lambda url: client(url).embeddings.create(model="m-1", input=ASKED),
        "two choices": lambda url: all_of(stream(url, n=2)),
        "refusal": chat,
        "image": image,
        "structured": structured,
        "responses": responses,
        "responses stream": lambda url: all_of(responses(url, stream=True)),
    }


def of_anthropic() -> dict[str, Case]:
    import anthropic

    called = {"type": "tool_use", "id": "t0", "name": "f", "input": {"city": HISTORY}}
    result = {"type": "tool_result", "tool_use_id": "t0", "content": RESULT}
    history = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": [called]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"name": "f", "description": DEFINED, "input_schema": PARAMETERS}]

    def call(url: str, **more: Any) -> Any:
        client = anthropic.Anthropic(base_url=url, api_key="test", max_retries=1)
        asked: Any = {"model": "m-1", "max_tokens": 99, "system": SYSTEM, "tools": tools}
        return client.messages.create(**asked | {"messages": history} | more)

    def image(url: str) -> Any:
        source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
        return call(url, messages=[{"role": "user", "content": [{"type": "image", "source": source}]}])

    return common(call, lambda url: call(url, stream=True)) | {"reasoning": call, "image": image}


def of_google() -> dict[str, Case]:
    from google import genai
    from google.genai import types

    call_part = {"function_call": {"name": "f", "args": {"city": HISTORY}}}
    result = {"function_response": {"name": "f", "response": {"result": RESULT}}}
    contents: Any = [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [call_part]},
        {"role": "user", "parts": [result]},
    ]
    function = {"name": "f", "description": DEFINED, "parameters_json_schema": PARAMETERS}
    config: Any = {"system_instruction": SYSTEM, "tools": [{"function_declarations": [function]}]}

    clients: list[Any] = []  # one that nobody holds closes its connections

    def models(url: str) -> Any:
        retry = types.HttpRetryOptions(attempts=2, initial_delay=0.01, max_delay=0.01)
        options = types.HttpOptions(base_url=url, retry_options=retry)
        clients.append(genai.Client(api_key="test", http_options=options))
        return clients[-1].models

    def call(url: str, contents: Any = contents) -> Any:
        return models(url).generate_content(model="m-1", contents=contents, config=config)

    def stream(url: str) -> Any:
        return models(url).generate_content_stream(model="m-1", contents=contents, config=config)

    def image(url: str) -> Any:
        part = {"inline_data": {"mime_type": "image/png", "data": IMAGE}}
        return call(url, [{"role": "user", "parts": [part]}])

    return common(call, stream) | {
        "reasoning": call,
        "image": image,
        "embeddings": lambda url: models(url).embed_content(model="m-1", contents=ASKED),
    }


def of_bedrock() -> dict[str, Case]:
    import boto3
    from botocore.config import Config

    called = {"toolUse": {"toolUseId": "t0", "name": "f", "input": {"city": HISTORY}}}
    result = {"toolResult": {"toolUseId": "t0", "content": [{"text": RESULT}]}}
    tool = {"name": "f", "description": DEFINED, "inputSchema": {"json": PARAMETERS}}
    asked: Any = {
        "modelId": "m-1",
        "system": [{"text": SYSTEM}],
        "messages": [
            {"role": "user", "content": [{"text": ASKED}]},
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ],
        "toolConfig": {"tools": [{"toolSpec": tool}]},
    }

    def client(url: str) -> Any:
        return boto3.client(
            "bedrock-runtime",
            "us-east-1",
            endpoint_url=url,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"mode": "standard", "max_attempts": 2}),
        )

    def invoked(url: str) -> Any:
        body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "system": SYSTEM}
        text = json.dumps(body | {"messages": [{"role": "user", "content": ASKED}]})
        return client(url).invoke_model(modelId="anthropic.claude-m-1", body=text)["body"].read()

    def stream(url: str) -> Any:
        return client(url).converse_stream(**asked)["stream"]

    return common(lambda url: client(url).converse(**asked), stream) | {"invoked": invoked}


def of_mistral() -> dict[str, Case]:
    from mistralai.client import Mistral
    from mistralai.client.utils import BackoffStrategy, RetryConfig

    asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}

    def client(url: str) -> Any:
        retry = RetryConfig("backoff", BackoffStrategy(1, 10, 1.1, 1000), True)
        return Mistral(api_key="test", server_url=url, retry_config=retry)

    return common(
        lambda url: client(url).chat.complete(**asked), lambda url: client(url).chat.stream(**asked)
    ) | {"embeddings": lambda url: client(url).embeddings.create(model="m-1", inputs=[ASKED])}


def of_cohere() -> dict[str, Case]:
    import cohere

    asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}

    def client(url: str) -> Any:
        return cohere.ClientV2(api_key="test", base_url=url)

    def embed(url: str) -> Any:
        more: Any = {"input_type": "search_query", "embedding_types": ["float"]}
        return client(url).embed(model="m-1", texts=[ASKED], **more)

    return common(
        lambda url: client(url).chat(**asked), lambda url: client(url).chat_stream(**asked)
    ) | {"embeddings": embed}


def of_groq() -> dict[str, Case]:
    import groq

    def call(url: str, **more: Any) -> Any:
        client = groq.Groq(base_url=url, api_key="test", max_retries=1)
        asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}
        return client.chat.completions.create(**asked | more)

    return common(call, lambda url: call(url, stream=True))


def of_ollama() -> dict[str, Case]:
    import ollama

    called = {"function": {"name": "f", "arguments": {"city": HISTORY}}}
    messages = [*MESSAGES[:2], {"role": "assistant", "content": "", "tool_calls": [called]}]
    messages.append({"role": "tool", "content": RESULT, "tool_name": "f"})

    def call(url: str, **more: Any) -> Any:
        return ollama.Client(host=url).chat(model="m-1", messages=messages, tools=TOOLS, **more)

    found = common(call, lambda url: call(url, stream=True)) | {
        "embeddings": lambda url: ollama.Client(host=url).embed(model="m-1", input=ASKED)
    }
    del found["retry"]
    return found


def of_together() -> dict[str, Case]:
    import together

    def client(url: str) -> Any:
        return together.Together(base_url=url, api_key="test", max_retries=1)

    def call(url: str, **more: Any) -> Any:
        asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}
        return client(url).chat.completions.create(**asked | more)

    return common(call, lambda url: call(url, stream=True)) | {
        "embeddings": lambda url: client(url).embeddings.create(model="m-1", input=ASKED)
    }


def of_hugging_face() -> dict[str, Case]:
    from huggingface_hub import InferenceClient

    clients: list[Any] = []  # one that nobody holds closes its connections

    def call(url: str, **more: Any) -> Any:
        clients.append(InferenceClient(base_url=url, api_key="test"))
        asked: Any = {"model": "m-1", "messages": MESSAGES, "tools": TOOLS}
        return clients[-1].chat_completion(**asked | more)

    def image(url: str) -> Any:
        part = {"type": "image_url", "image_url": {"url": PICTURE}}
        return call(url, messages=[{"role": "user", "content": [part]}])

    found = common(call, lambda url: call(url, stream=True)) | {"image": image}
    del found["retry"]
    return found


def of_litellm() -> dict[str, Case]:
    import litellm

    def asked(url: str, route: str = "openai", **more: Any) -> Any:
        where = {"model": f"{route}/m-1", "api_base": url, "api_key": "test"}
        return {**where, "messages": MESSAGES, "tools": TOOLS, **more}

    def call(url: str, **more: Any) -> Any:
        return litellm.completion(**asked(url, max_retries=1, **more))

    def stream(url: str) -> Any:
        return call(url, stream=True, stream_options={"include_usage": True})

    def image(url: str) -> Any:
        part = {"type": "image_url", "image_url": {"url": PICTURE}}
        return call(url, messages=[{"role": "user", "content": [part]}])

    def embed(url: str) -> Any:
        return litellm.embedding(model="openai/m-1", input=[ASKED], api_base=url, api_key="test")

    return common(call, stream) | {
        "embeddings": embed,
        "image": image,
        "to anthropic": lambda url: litellm.completion(**asked(url, "anthropic")),
        "to anthropic stream": lambda url: all_of(
            litellm.completion(**asked(url, "anthropic"), stream=True)
        ),
        "to anthropic retry": lambda url: litellm.completion(**asked(url, "anthropic"), num_retries=1),
        "to gemini": lambda url: litellm.completion(**asked(url, "gemini")),
        "to gemini stream": lambda url: all_of(litellm.completion(**asked(url, "gemini"), stream=True)),
    }


def of_xai() -> dict[str, Case]:
    import xai_sdk
    from xai_sdk.chat import assistant, image, system, tool, tool_result, user
    from xai_sdk.proto import chat_pb2

    function = chat_pb2.FunctionCall(name="f", arguments=json.dumps({"city": HISTORY}))
    called = assistant("")
    called.tool_calls.append(chat_pb2.ToolCall(id="call_0", function=function))
    history = [system(SYSTEM), user(ASKED), called, tool_result(RESULT, "call_0")]

    def chat(url: str, messages: Any = history, **more: Any) -> Any:
        host, _, _ = url.rpartition("/")
        client = xai_sdk.Client(api_key="test", api_host=host, use_insecure_channel=True)
        tools = [tool("f", DEFINED, PARAMETERS)]
        return client.chat.create(model="m-1", messages=messages, tools=tools, **more)

    def structured(url: str) -> Any:
        from pydantic import create_model

        return chat(url).parse(create_model(SCHEMA, city=(str, ...)))

    def call(url: str) -> Any:
        return chat(url).sample()

    found = common(call, lambda url: chat(url).stream()) | {
        "reasoning": call,
        "image": lambda url: chat(url, [user(image(PICTURE))]).sample(),
        "structured": structured,
    }
    del found["retry"]
    return found


CASES: dict[str, Callable[[], dict[str, Case]]] = {
    "openai": of_openai,
    "anthropic": of_anthropic,
    "google-genai": of_google,
    "bedrock": of_bedrock,
    "mistral": of_mistral,
    "cohere": of_cohere,
    "groq": of_groq,
    "ollama": of_ollama,
    "together": of_together,
    "huggingface_hub": of_hugging_face,
    "litellm": of_litellm,
    "xai": of_xai,
}
"""By SDK."""
