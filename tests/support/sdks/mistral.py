"""mistralai."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from mistralai.client import Mistral as Client
from mistralai.client.utils import BackoffStrategy, RetryConfig
from support.sdks import chat


class Mistral:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, tries: int = 1, timeout_s: float = 20.0) -> Any:
        again = RetryConfig("backoff", BackoffStrategy(1, 1, 1.0, 5000), True) if tries > 1 else None
        more = {} if again is None else {"retry_config": again}
        return Client(api_key="k", server_url=self.url, timeout_ms=int(timeout_s * 1000), **more)

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer = self.client(tries, timeout_s).chat.complete(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    def stream(self, wants: str = "") -> Iterator[object]:
        with self.client().chat.stream(**chat.asked(wants)) as parts:
            for part in parts:
                yield chat.said(part.data.choices[0].delta) if part.data.choices else None

    async def aask(self, wants: str = "") -> object:
        answer = await self.client().chat.complete_async(**chat.asked(wants))
        return chat.said(answer.choices[0].message)

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async with await self.client().chat.stream_async(**chat.asked(wants)) as parts:
            async for part in parts:
                yield chat.said(part.data.choices[0].delta) if part.data.choices else None
