"""anthropic: at its own API, on Bedrock, on Vertex; and its model on Bedrock through boto3."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
from support.sdks import cases
from support.sdks.bedrock import Bedrock


def asked(wants: str) -> dict[str, Any]:
    """The fields of a request, without the model."""
    content: Any = cases.HELLO
    if wants == "image":
        source = {"type": "base64", "media_type": "image/png", "data": cases.PIXEL}
        content = [{"type": "text", "text": content}, {"type": "image", "source": source}]
    fields: dict[str, Any] = {"max_tokens": 64, "messages": [{"role": "user", "content": content}]}
    if wants == "tools":
        tool = {"name": cases.TOOL, "description": cases.ABOUT, "input_schema": cases.SCHEMA}
        fields["tools"] = [tool]
    if wants == "schema":
        schema = {**cases.SCHEMA, "additionalProperties": False}
        fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return fields


class Claude:
    kinds: tuple[str, str] = ("Anthropic", "AsyncAnthropic")
    known: dict[str, Any]
    """What such a client is given."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.known = {"api_key": "k"}

    def client(self, asynchronous: bool = False, tries: int = 1, timeout_s: float = 20.0) -> Any:
        kind = getattr(anthropic, self.kinds[asynchronous])
        return kind(base_url=self.url, max_retries=tries - 1, timeout=timeout_s, **self.known)

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        client = self.client(False, tries, timeout_s)
        answer = client.messages.create(model=cases.MODEL, **asked(wants))
        return [one.to_dict() for one in answer.content]

    def stream(self, wants: str = "") -> Iterator[object]:
        asks = {"model": cases.MODEL, **asked(wants), "stream": True}
        with self.client().messages.create(**asks) as events:
            for event in events:
                yield event.type

    async def aask(self, wants: str = "") -> object:
        async with self.client(True) as client:
            answer = await client.messages.create(model=cases.MODEL, **asked(wants))
        return [one.to_dict() for one in answer.content]

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        asks = {"model": cases.MODEL, **asked(wants), "stream": True}
        async with self.client(True) as client, await client.messages.create(**asks) as events:
            async for event in events:
                yield event.type


class ClaudeOnBedrock(Claude):
    kinds = ("AnthropicBedrock", "AsyncAnthropicBedrock")

    def __init__(self, url: str) -> None:
        self.url = url
        self.known = {"aws_access_key": "a", "aws_secret_key": "b", "aws_region": "eu-west-1"}


class ClaudeOnVertex(Claude):
    kinds = ("AnthropicVertex", "AsyncAnthropicVertex")

    def __init__(self, url: str) -> None:
        self.url = url
        self.known = {"access_token": "t", "project_id": "p", "region": "europe-west1"}


class Invoked(Bedrock):
    """The same model through boto3, which takes the body as bytes."""

    def given(self, wants: str) -> dict[str, Any]:
        """What the SDK is given."""
        body = {"anthropic_version": "bedrock-2023-05-31", **asked(wants)}
        return {"modelId": cases.MODEL, "body": json.dumps(body)}

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer = self.client(tries, timeout_s).invoke_model(**self.given(wants))
        return json.loads(answer["body"].read())["content"]

    def stream(self, wants: str = "") -> Iterator[object]:
        parts = self.client().invoke_model_with_response_stream(**self.given(wants))["body"]
        try:
            for part in parts:
                yield json.loads(part["chunk"]["bytes"])["type"]
        finally:
            parts.close()
