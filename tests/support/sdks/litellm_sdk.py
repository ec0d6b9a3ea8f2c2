"""litellm, which asks OpenAI's chat through the SDK of openai."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import litellm
from support.sdks import cases, chat

litellm.suppress_debug_info = True


class Litellm:
    def __init__(self, url: str) -> None:
        self.url = url

    def asked(self, wants: str, tries: int = 1, timeout_s: float = 20.0) -> dict[str, Any]:
        where = {"model": f"openai/{cases.MODEL}", "api_base": self.url, "api_key": "k"}
        return {**chat.asked(wants), **where, "max_retries": tries - 1, "timeout": timeout_s}

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        answer: Any = litellm.completion(**self.asked(wants, tries, timeout_s))
        return chat.said(answer.choices[0].message)

    def stream(self, wants: str = "") -> Iterator[object]:
        parts: Any = litellm.completion(**self.asked(wants), stream=True)
        for part in parts:
            yield chat.said(part.choices[0].delta)

    async def aask(self, wants: str = "") -> object:
        answer: Any = await litellm.acompletion(**self.asked(wants))
        return chat.said(answer.choices[0].message)

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        parts: Any = await litellm.acompletion(**self.asked(wants), stream=True)
        async for part in parts:
            yield chat.said(part.choices[0].delta)
