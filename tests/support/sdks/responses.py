"""openai, at its responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
from support.sdks import cases


class Responses:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, kind: Any = openai.OpenAI, tries: int = 1, timeout_s: float = 20.0) -> Any:
        return kind(api_key="k", base_url=self.url, max_retries=tries - 1, timeout=timeout_s)

    def asked(self, wants: str) -> dict[str, Any]:
        content: list[Any] = [{"type": "input_text", "text": cases.HELLO}]
        if wants == "image":
            picture = f"data:image/png;base64,{cases.PIXEL}"
            content.append({"type": "input_image", "image_url": picture, "detail": "auto"})
        asked: dict[str, Any] = {
            "model": cases.MODEL,
            "input": [{"role": "user", "content": content}],
        }
        if wants == "tools":
            tool = {"name": cases.TOOL, "description": cases.ABOUT, "parameters": cases.SCHEMA}
            asked["tools"] = [{"type": "function", **tool}]
        if wants == "schema":
            form = {"type": "json_schema", "name": "answer", "schema": cases.SCHEMA}
            asked["text"] = {"format": form}
        return asked

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer = self.client(tries=tries, timeout_s=timeout_s).responses.create(**self.asked(wants))
        return said(answer)

    def stream(self, wants: str = "") -> Iterator[object]:
        with self.client().responses.create(**self.asked(wants), stream=True) as events:
            for event in events:
                yield event.type

    async def aask(self, wants: str = "") -> object:
        async with self.client(openai.AsyncOpenAI) as client:
            return said(await client.responses.create(**self.asked(wants)))

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async with (
            self.client(openai.AsyncOpenAI) as client,
            await client.responses.create(**self.asked(wants), stream=True) as events,
        ):
            async for event in events:
                yield event.type


def said(answer: Any) -> object:
    calls = [(one.name, one.arguments) for one in answer.output if one.type == "function_call"]
    return calls or answer.output_text
