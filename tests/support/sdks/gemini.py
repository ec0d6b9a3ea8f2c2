"""google-genai."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

from google import genai
from google.genai import types
from support.sdks import cases


class Gemini:
    def __init__(self, url: str) -> None:
        self.url = url

    def client(self, tries: int = 1, timeout_s: float = 20.0) -> Any:
        retry = types.HttpRetryOptions(attempts=tries, initial_delay=0.01, max_delay=0.01)
        options = types.HttpOptions(
            base_url=self.url, retry_options=retry, timeout=int(timeout_s * 1000)
        )
        self.made = genai.Client(api_key="k", http_options=options)  # it closes when it is collected
        return self.made

    def asked(self, wants: str) -> dict[str, Any]:
        contents: Any = cases.HELLO
        config: Any = None
        if wants == "image":
            picture = base64.b64decode(cases.PIXEL)
            contents = [cases.HELLO, types.Part.from_bytes(data=picture, mime_type="image/png")]
        if wants == "schema":
            config = {"response_mime_type": "application/json", "response_json_schema": cases.SCHEMA}
        if wants == "tools":
            tool = {
                "name": cases.TOOL,
                "description": cases.ABOUT,
                "parameters_json_schema": cases.SCHEMA,
            }
            config = {"tools": [{"function_declarations": [tool]}]}
        return {"model": cases.MODEL, "contents": contents, "config": config}

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        return said(self.client(tries, timeout_s).models.generate_content(**self.asked(wants)))

    def stream(self, wants: str = "") -> Iterator[object]:
        for part in self.client().models.generate_content_stream(**self.asked(wants)):
            yield said(part)

    async def aask(self, wants: str = "") -> object:
        return said(await self.client().aio.models.generate_content(**self.asked(wants)))

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async for part in await self.client().aio.models.generate_content_stream(**self.asked(wants)):
            yield said(part)


def said(answer: Any) -> object:
    calls = [(one.name, one.args) for one in answer.function_calls or ()]
    return calls or (answer.candidates and answer.candidates[0].content and answer.text)
