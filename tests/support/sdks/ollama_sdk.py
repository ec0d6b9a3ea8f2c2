"""ollama."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import ollama
from support.sdks import cases, chat


class Ollama:
    def __init__(self, url: str) -> None:
        self.url = url

    def asked(self, wants: str) -> dict[str, Any]:
        fields = {name: value for name, value in chat.asked(wants).items() if name != "response_format"}
        if wants == "image":
            fields["messages"] = [
                {"role": "user", "content": cases.HELLO, "images": [cases.PIXEL]},
            ]
        if wants == "schema":
            fields["format"] = cases.SCHEMA
        return fields

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        return said(ollama.Client(host=self.url, timeout=timeout_s).chat(**self.asked(wants)))

    def stream(self, wants: str = "") -> Iterator[object]:
        parts = ollama.Client(host=self.url).chat(**self.asked(wants), stream=True)
        try:
            for part in parts:
                yield said(part)
        finally:
            parts.close()

    async def aask(self, wants: str = "") -> object:
        return said(await ollama.AsyncClient(host=self.url).chat(**self.asked(wants)))

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async for part in await ollama.AsyncClient(host=self.url).chat(**self.asked(wants), stream=True):
            yield said(part)


def said(answer: Any) -> object:
    calls = answer.message.tool_calls or ()
    return [(one.function.name, dict(one.function.arguments)) for one in calls] or answer.message.content
