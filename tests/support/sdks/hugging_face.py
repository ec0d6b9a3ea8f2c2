"""huggingface_hub."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from huggingface_hub import AsyncInferenceClient, InferenceClient
from support.sdks import chat


class HuggingFace:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, kind: Any = InferenceClient, timeout_s: float = 20.0) -> Any:
        return kind(base_url=self.url, api_key="k", timeout=timeout_s)

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer = self.client(timeout_s=timeout_s).chat_completion(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    def stream(self, wants: str = "") -> Iterator[object]:
        with self.client() as client:
            for part in client.chat_completion(**chat.asked(wants), stream=True):
                yield chat.said(part.choices[0].delta) if part.choices else None

    async def aask(self, wants: str = "") -> object:
        answer = await self.client(AsyncInferenceClient).chat_completion(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async with self.client(AsyncInferenceClient) as client:
            async for part in await client.chat_completion(**chat.asked(wants), stream=True):
                yield chat.said(part.choices[0].delta) if part.choices else None
