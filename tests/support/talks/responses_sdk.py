"""The clients of openai for its Responses API over a WebSocket: blocking, and with asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.talks import openai_sdk, program


class Responses(openai_sdk.Realtime):
    """The blocking client."""

    @asynccontextmanager
    async def connect(
        self, open_s: float | None = None, tools: bool = False, schema: bool = False
    ) -> AsyncIterator[Any]:
        more: dict[str, Any] = {}
        if open_s is not None:
            more = {"websocket_connection_options": {"open_timeout": open_s}}
        asked: dict[str, Any] = {"model": program.MODEL, "instructions": program.INSTRUCTIONS}
        if tools:
            asked["tools"] = [openai_sdk.WEATHER]
        if schema:
            shape = {"type": "json_schema", "name": "city", "schema": program.SCHEMA}
            asked["text"] = {"format": shape}
        async with self.entered(self.client.responses.connect(**more)) as connection:
            yield (Blocking if self.blocks else Session)(connection, asked)


class AsyncResponses(Responses, openai_sdk.AsyncRealtime):
    """The client with asyncio."""


class Session(openai_sdk.Session):
    """See `program.Session`."""

    def __init__(self, connection: Any, asked: dict[str, Any]) -> None:
        super().__init__(connection)
        self.asked = asked
        self.last = ""
        """Id of the response that is being given."""

    async def ask(self, picture: str = "") -> None:
        content: Any = [{"type": "input_text", "text": program.HELLO}]
        if picture:
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{picture}"})
        await self.create([{"type": "message", "role": "user", "content": content}])

    async def create(self, items: list[Any], **more: Any) -> None:
        await self.done(self.connection.response.create(input=items, **self.asked, **more))

    async def give(self, result: str) -> None:
        kind = {"type": "function_call_output", "output": result}
        await self.create(
            [kind | {"call_id": call} for call in self.calls], previous_response_id=self.last
        )

    async def speak(self) -> None:
        await self.done(self.connection.response.steer(previous_response_id=self.last, input="Stop"))

    async def hear(self) -> tuple[str, bool]:
        event = await self.received()
        kind = getattr(event, "type", None)
        if event is None:
            return "closed", True
        if kind == "error":
            return f"error {event.error.message}", True
        response = getattr(event, "response", None)
        if response is None:
            return f"{kind} {str(getattr(event, 'delta', ''))[:9]}", False
        self.last = response.id
        self.calls = [one.call_id for one in response.output if one.type == "function_call"]
        return f"{response.status} {self.calls}", kind != "response.created"


class Blocking(Session, openai_sdk.Blocking):
    """The same over the blocking client."""
