"""xai-sdk, whose API is gRPC. It can do more than the others: `Xai.own`."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import grpc
from support.sdks import cases
from xai_sdk import AsyncClient, Client
from xai_sdk.chat import image, tool, user
from xai_sdk.proto import chat_pb2


class Xai:
    def __init__(self, target: str) -> None:
        self.made: dict[str, Any] = {"api_key": "k", "api_host": target, "use_insecure_channel": True}
        self.own = {
            "deferred": Xai.deferred,
            "picture": Xai.picture,
            "malformed answer": Xai.ask,
            "closed": Xai.closed,
            "gone": Xai.gone,
            "async timeout": Xai.late,
            "async cut": cases.read,
            "async gone": Xai.agone,
        }

    def chat(self, client: Any, wants: str = "") -> Any:
        """A conversation, before its answer."""
        fields: dict[str, Any] = {"model": cases.MODEL, "temperature": 0.7}
        content: list[Any] = [cases.HELLO]
        if wants == "image":
            content.append(image(f"data:image/png;base64,{cases.PIXEL}", detail="low"))
        if wants == "tools":
            fields["tools"] = [tool(cases.TOOL, cases.ABOUT, cases.SCHEMA)]
        if wants == "schema":
            kind = chat_pb2.FormatType.FORMAT_TYPE_JSON_SCHEMA
            fields["response_format"] = chat_pb2.ResponseFormat(
                format_type=kind, schema=json.dumps(cases.SCHEMA)
            )
        return client.chat.create(messages=[user(*content)], **fields)

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        with Client(**self.made, timeout=timeout_s) as client:
            return said(self.chat(client, wants).sample())

    def stream(self, wants: str = "") -> Iterator[object]:
        with Client(**self.made) as client:
            for _, part in self.chat(client, wants).stream():
                yield said(part)

    async def aask(self, wants: str = "", timeout_s: float = 20.0) -> object:
        async with AsyncClient(**self.made, timeout=timeout_s) as client:
            return said(await self.chat(client, wants).sample())

    async def astream(self, wants: str = "") -> AsyncIterator[object]:
        async with AsyncClient(**self.made) as client:
            async for _, part in self.chat(client, wants).stream():
                yield said(part)

    def deferred(self) -> object:
        """Begin an answer, and fetch it until it is there."""
        with Client(**self.made) as client:
            return said(self.chat(client).defer(interval=timedelta(milliseconds=10)))

    def picture(self) -> object:
        """Have a picture made."""
        with Client(**self.made) as client:
            return client.image.sample(cases.HELLO, cases.MODEL).url

    def closed(self) -> object:
        """Another thread closes the client while a stream is read."""
        got: list[object] = []
        with Client(**self.made) as client:
            closing = threading.Thread(target=client.close)
            try:
                for _, part in self.chat(client).stream():
                    got.append(said(part))
                    closing.start()
            except grpc.RpcError as error:
                got.append(error.code().name)
            closing.join()
        return got

    def gone(self) -> object:
        """The server goes away while a stream is read and another answer is awaited."""
        parts = self.stream()
        got = [next(parts), self.ask()]
        try:
            got += parts
        except grpc.RpcError as error:
            got.append(error.code().name)
        return got

    async def agone(self) -> object:
        """The same with asyncio."""
        parts = self.astream()
        got = [await anext(parts), await self.aask()]
        try:
            got += [part async for part in parts]
        except grpc.RpcError as error:
            got.append(error.code().name)
        return got

    async def late(self) -> object:
        """Its deadline passes."""
        return await self.aask(timeout_s=0.4)


def said(answer: Any) -> object:
    """What an answer, or a piece of one, says."""
    calls = [(one.function.name, json.loads(one.function.arguments)) for one in answer.tool_calls]
    return calls or answer.content or answer.reasoning_content
