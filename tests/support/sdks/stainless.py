"""groq, together and openai, at OpenAI's chat: SDKs of one family."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from typing import Any

from support.sdks import chat


class Stainless:
    module: str
    kinds: tuple[str, str]

    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, asynchronous: bool = False, tries: int = 1, timeout_s: float = 20.0) -> Any:
        kind = getattr(import_module(self.module), self.kinds[asynchronous])
        return kind(api_key="k", base_url=self.url, max_retries=tries - 1, timeout=timeout_s)

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        client = self.client(False, tries, timeout_s)
        answer = client.chat.completions.create(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    def stream(self, wants: str = "") -> Iterator[object]:
        with self.client().chat.completions.create(**chat.asked(wants), stream=True) as parts:
            for part in parts:
                yield chat.said(part.choices[0].delta) if part.choices else None

    async def aask(self, wants: str = "") -> object:
        async with self.client(True) as client:
            answer = await client.chat.completions.create(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async with (
            self.client(True) as client,
            await client.chat.completions.create(**chat.asked(wants), stream=True) as parts,
        ):
            async for part in parts:
                yield chat.said(part.choices[0].delta) if part.choices else None


class Groq(Stainless):
    module = "groq"
    kinds = ("Groq", "AsyncGroq")


class Together(Stainless):
    module = "together"
    kinds = ("Together", "AsyncTogether")


class OpenAI(Stainless):
    module = "openai"
    kinds = ("OpenAI", "AsyncOpenAI")
