"""The realtime clients of openai: blocking, and with asyncio."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
from support.talks import program

WEATHER = {
    "type": "function",
    "name": program.TOOL,
    "description": program.ABOUT,
    "parameters": program.SCHEMA,
}
RECONNECTS = {"on_reconnecting": lambda event: None, "initial_delay": 0.01, "max_delay": 0.01}


class Realtime:
    """The blocking client. After a reconnection the session has no instructions."""

    blocks = True

    def __init__(self, url: str) -> None:
        self.client = self.made(url)

    def made(self, url: str) -> Any:
        return openai.OpenAI(api_key="sk-test", websocket_base_url=f"{url}/v1")

    @asynccontextmanager
    async def connect(
        self, open_s: float | None = None, tools: bool = False, again: bool = False
    ) -> AsyncIterator[Any]:
        more = RECONNECTS if again else {}
        if open_s is not None:
            more = more | {"websocket_connection_options": {"open_timeout": open_s}}
        async with self.entered(self.client.realtime.connect(model=program.MODEL, **more)) as connection:
            yield await (Blocking if self.blocks else Session)(connection).begin(tools)

    @asynccontextmanager
    async def entered(self, opening: Any) -> AsyncIterator[Any]:
        if self.blocks:
            with opening as connection:
                yield connection
        else:
            async with opening as connection:
                yield connection


class AsyncRealtime(Realtime):
    """The client with asyncio."""

    blocks = False

    def made(self, url: str) -> Any:
        return openai.AsyncOpenAI(api_key="sk-test", websocket_base_url=f"{url}/v1")


class AzureRealtime(Realtime):
    """The blocking client for Azure."""

    def made(self, url: str) -> Any:
        return openai.AzureOpenAI(
            api_key="azure-test",
            api_version="2026-01-01",
            azure_endpoint="https://azure.test",
            websocket_base_url=f"{url}/openai",
        )


class Session:
    """See `program.Session`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.calls: list[str] = []
        self.events: Any = None

    async def done(self, waiting: Any) -> Any:
        return await waiting

    async def received(self) -> Any:
        self.events = self.events or aiter(self.connection)
        return await anext(self.events, None)

    async def begin(self, tools: bool) -> Session:
        await self.received()
        session: Any = {"type": "realtime", "instructions": program.INSTRUCTIONS}
        if tools:
            session["tools"] = [WEATHER]
        await self.done(self.connection.session.update(session=session))
        await self.received()
        return self

    async def ask(self, picture: str = "") -> None:
        content: Any = [{"type": "input_text", "text": program.HELLO}]
        if picture:
            content.append({"type": "input_image", "image_url": f"data:image/png;base64,{picture}"})
        item: Any = {"type": "message", "role": "user", "content": content}
        await self.add(item)
        await self.done(self.connection.response.create(event_id="ask"))

    async def add(self, item: Any) -> None:
        await self.done(self.connection.conversation.item.create(item=item))
        await self.received()

    async def give(self, result: str) -> None:
        for call in self.calls:
            item: Any = {"type": "function_call_output", "call_id": call, "output": result}
            await self.add(item)
        self.calls = []
        await self.done(self.connection.response.create())

    async def speak(self) -> None:
        sound = base64.b64encode(program.SOUND).decode()
        await self.done(self.connection.input_audio_buffer.append(audio=sound))

    async def stop(self) -> None:
        await self.done(self.connection.response.cancel())

    async def wait(self) -> str:
        async with asyncio.timeout(program.PATIENCE_S):
            return (await self.hear())[0]

    async def hear(self) -> tuple[str, bool]:
        event = await self.received()
        kind = getattr(event, "type", None)
        if event is None or kind == "session.created":  # the connection is closed, or there is a new one
            return kind or "closed", True
        if kind == "response.done":
            self.calls = [one.call_id for one in event.response.output or () if hasattr(one, "call_id")]
            return f"done {event.response.status} {self.calls}", True
        if kind == "error":
            return f"error {event.error.message}", True
        return f"{kind} {str(getattr(event, 'delta', ''))[:9]}", False


class Blocking(Session):
    """The same over the blocking client."""

    async def done(self, waiting: Any) -> Any:
        return waiting

    async def received(self) -> Any:
        self.events = self.events or iter(self.connection)
        return next(self.events, None)

    async def wait(self) -> str:
        closing = threading.Timer(program.PATIENCE_S, self.connection.close)
        closing.start()
        event, _ = await self.hear()
        closing.join()
        return event
