"""cohere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import cohere
from support.sdks import cases, chat


class Cohere:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, kind: Any = cohere.ClientV2, timeout_s: float = 20.0) -> Any:
        return kind(api_key="k", base_url=self.url, timeout=timeout_s)

    def asked(self, wants: str, tries: int = 1) -> dict[str, Any]:
        fields = chat.asked(wants)
        if wants == "schema":
            fields["response_format"] = {"type": "json_object", "json_schema": cases.SCHEMA}
        more = tries + 1 if tries > 1 else 0  # old versions count from 2
        return {**fields, "request_options": {"max_retries": more}}

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        return said(self.client(timeout_s=timeout_s).chat(**self.asked(wants, tries)).message)

    def stream(self, wants: str = "") -> Iterator[object]:
        for part in self.client().chat_stream(**self.asked(wants)):
            yield part.type

    async def aask(self, wants: str = "") -> object:
        answer = await self.client(cohere.AsyncClientV2).chat(**self.asked(wants))
        return said(answer.message)

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async for part in self.client(cohere.AsyncClientV2).chat_stream(**self.asked(wants)):
            yield part.type


def said(message: Any) -> object:
    calls = [(one.function.name, one.function.arguments) for one in message.tool_calls or ()]
    return calls or [getattr(one, "text", "") for one in message.content or ()]
