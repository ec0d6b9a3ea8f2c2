"""The live client of google-genai."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from google import genai
from google.genai import types
from support.talks import program


class Live:
    """The client, which has asyncio alone."""

    blocks = False
    vertex = False

    def __init__(self, url: str) -> None:
        options = types.HttpOptions(base_url=url)
        self.client = genai.Client(api_key="k", vertexai=self.vertex, http_options=options)

    @asynccontextmanager
    async def connect(
        self,
        open_s: float | None = None,
        tools: bool = False,
        schema: bool = False,
        again: bool = False,
    ) -> AsyncIterator[Any]:
        config: dict[str, Any] = {
            "response_modalities": ["TEXT"],
            "system_instruction": program.INSTRUCTIONS,
        }
        if schema:
            shape = {"response_mime_type": "application/json", "response_json_schema": program.SCHEMA}
            config["generation_config"] = shape
        if tools:
            tool = {
                "name": program.TOOL,
                "description": program.ABOUT,
                "parameters_json_schema": program.SCHEMA,
            }
            config["tools"] = [{"function_declarations": [tool]}]
        async with AsyncExitStack() as opened:
            session = Session(self.client.aio.live, config, opened, again)
            async with asyncio.timeout(open_s):
                await session.open()
            yield session


class LiveOnVertex(Live):
    """The same for Vertex."""

    vertex = True


class Session:
    """See `program.Session`."""

    def __init__(self, live: Any, config: dict[str, Any], opened: AsyncExitStack, again: bool) -> None:
        self.live, self.config, self.opened, self.again = live, config, opened, again
        self.calls: list[Any] = []
        self.events: Any = None
        self.connection: Any = None

    async def open(self) -> None:
        opening = self.live.connect(model=program.MODEL, config=self.config)
        self.connection = await self.opened.enter_async_context(opening)

    async def ask(self, picture: str = "") -> None:
        parts = [types.Part(text=program.HELLO)]
        if picture:
            parts.append(types.Part.from_bytes(data=base64.b64decode(picture), mime_type="image/png"))
        await self.connection.send_client_content(turns=types.Content(role="user", parts=parts))

    async def give(self, result: str) -> None:
        answers = [
            types.FunctionResponse(id=one.id, name=one.name, response={"sky": result})
            for one in self.calls
        ]
        self.calls = []
        await self.connection.send_tool_response(function_responses=answers)

    async def speak(self) -> None:
        sound = types.Blob(data=program.SOUND, mime_type="audio/pcm")
        await self.connection.send_realtime_input(audio=sound)

    async def stop(self) -> None:
        raise NotImplementedError("the wire has no means for it")

    async def wait(self) -> str:
        async with asyncio.timeout(program.PATIENCE_S):
            return (await self.hear())[0]

    async def hear(self) -> tuple[str, bool]:
        self.events = self.events or self.connection.receive()
        message = await anext(self.events)
        if message.tool_call:
            self.calls = message.tool_call.function_calls
            return f"calls {[one.id for one in self.calls]}", True
        if message.session_resumption_update and self.again:
            handle = message.session_resumption_update.new_handle
            self.config["session_resumption"] = {"handle": handle}
        content = message.server_content
        over = bool(content and content.turn_complete)
        if over:
            self.events = None
        if message.go_away and self.again:
            self.events, over = None, True
            await self.connection.close()
            await self.open()
        return f"{sorted(message.model_dump(exclude_none=True))} {str(message.text or '')[:9]}", over
