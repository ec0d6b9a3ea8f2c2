"""litellm: OpenAI's chat through the SDK of openai, the other routes through clients of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import litellm
from support.sdks import cases, chat

litellm.suppress_debug_info = True
litellm.register_model(
    {
        f"gemini/{cases.MODEL}": {
            "litellm_provider": "gemini",
            "mode": "chat",
            "supports_response_schema": True,
        }
    }
)  # else it puts the schema of an answer among the texts


class Litellm:
    route = "openai"
    again = "max_retries"
    """What a route calls the number of times that it may send once more."""
    known: ClassVar[dict[str, Any]] = {"api_key": "k"}
    """What it is told of itself."""

    def __init__(self, url: str) -> None:
        self.url = url

    def asked(self, wants: str, tries: int = 1, timeout_s: float = 20.0) -> dict[str, Any]:
        where = {"model": f"{self.route}/{cases.MODEL}", "api_base": self.url, **self.known}
        return {**chat.asked(wants), **where, self.again: tries - 1, "timeout": timeout_s}

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


class Anthropic(Litellm):
    route, again = "anthropic", "num_retries"


class Gemini(Litellm):
    route, again = "gemini", "num_retries"


class Bedrock(Litellm):
    route, again = "bedrock/converse", "num_retries"
    known: ClassVar[dict[str, Any]] = {
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
        "aws_region_name": "eu-west-1",
        "allowed_openai_params": ["tools"],
    }
