"""One connection to an MCP server on stdio: its messages in both directions."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Any, Final, cast

from playhead_core.errors import PlayheadError
from playhead_core.facts import Delivery
from playhead_core.rerun.open_connections import STDIO, reads, repeatable_tools
from playhead_instrumentation.libraries.mcp.reopened_server import PlayedClient, Reopened
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import required
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.driver import span_around
from playhead_instrumentation.recorder.exceptions import again, is_rejection, record_of
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

KIND: Final = "mcp"

TRACING: Final = ("progressToken", "traceparent", "tracestate", "baggage")
"""Keys that the SDK itself puts into ``_meta``; their values differ each time."""


class Kit:
    """The parts of the SDK that are used here."""

    def __init__(self, module: ModuleType) -> None:
        self.anyio: Any = required(module, "anyio")
        types: Any = required(module, "types")
        self._message: Any = required(module, "SessionMessage")
        self._adapter: Any = getattr(types, "jsonrpc_message_adapter", None)
        self._model: Any = None if self._adapter is not None else types.JSONRPCMessage

    def message(self, plain: dict[str, Any]) -> Any:
        """Return a message as the SDK reads it from its server."""
        if self._adapter is not None:
            return self._message(self._adapter.validate_python(plain, by_name=False))
        return self._message(self._model.model_validate(plain))

    @staticmethod
    def plain(item: Any) -> dict[str, Any]:
        """Return a message as JSON values; an exception as its text."""
        if isinstance(item, Exception):
            return {"exception": str(item)}
        return item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)


class Connection:
    """A connection as an exchange; its parts are what the server sends on its own initiative."""

    def __init__(self, session: Session, kit: Kit, label: str) -> None:
        """``label``: names the server."""
        session.settle()
        self._session: Final = session
        self._kit: Final = kit
        self._label: Final = label
        self._pending: dict[str, Call] = {}
        """Requests that are not answered yet, by id."""
        self._now: dict[str, Any] = {}
        """Replay: ids of the requests now, by their recorded ids."""
        self._repeatable: set[str] = set()
        """Tools that declare that they only read, or that calling them again changes nothing."""
        self._told: list[Any] = []
        """What the client has sent while a tape answered."""
        self._inbox: Any = None
        self._tasks: Any = None
        self.call: Final = self._open(f"{STDIO}{label}", None, {}, "write")
        self.call.head({a.NETWORK_TRANSPORT: "pipe"}, None)
        session.open_exchanges.add(self)

    def _open(self, key: str, body: Any, details: dict[str, Any], effect: Any) -> Call:
        call = self._session.driver.open(
            KIND,
            key,
            b"" if body is None else _dumped(body),
            details,
            effect=effect,
            span=span_around(),
        )
        call.scrub = self._session.redactor.response("application/json", "")
        return call

    def _heard(self, reader: Any, writer: Any) -> tuple[Any, Any]:
        """Wrap the streams of a real server."""
        return ReceivedMessages(reader, self), SentMessages(writer, self)

    def _failed(self, error: Exception, at: Delivery | None) -> None:
        """The server could not be started."""
        if self.call.end("error", at, record_of(error, self._session.redactor.text)):
            self._session.open_exchanges.discard(self)

    def abandoned(self) -> None:
        """The program leaves the connection."""
        for call in self._pending.values():
            call.end("abandoned")
        if self.call.end("abandoned"):
            self._session.open_exchanges.discard(self)

    async def sent(self, item: Any) -> Any:
        """Record a message of the client before it returns. Raises if it is refused.

        Returns the message for the real server; None if nothing is to be sent.
        """
        plain = Kit.plain(item)
        method = str(plain.get("method", ""))
        params: dict[str, Any] = dict(plain.get("params") or {})
        if "_meta" in params:
            meta = {name: one for name, one in params.pop("_meta").items() if name not in TRACING}
            params |= {"_meta": meta} if meta else {}
        body: dict[str, Any] = {"server": self._label, "params": params}
        if not method:  # an answer to the server
            body |= {name: plain[name] for name in ("id", "result", "error") if name in plain}
        target = params.get("name") or params.get("uri")
        key = f"{method or 'answer'} {target}" if isinstance(target, str) else method or "answer"
        details: dict[str, Any] = {a.MCP_METHOD_NAME: method} if method else {}
        asks = bool(method) and "id" in plain
        if asks:
            details[a.JSONRPC_REQUEST_ID] = str(plain["id"])
        self._session.settle()
        effect = "read" if reads(method, str(params.get("name", "")), self._repeatable) else "write"
        call = self._open(key, body, details, effect)
        self._check(call)
        call.head({a.NETWORK_TRANSPORT: "pipe"}, None)
        if asks and call.pending_release is not None:
            await self._departs(call)
        return call.answer(self._send, self._send_again, call, item, plain if asks else None)

    async def _departs(self, call: Call) -> None:
        """Wait until the request may go out. What interrupts the wait ends it."""
        try:
            await call.release()
        except BaseException as error:
            call.end("error", None, record_of(error, self._session.redactor.text))
            raise

    def _check(self, call: Call) -> None:
        """End ``call`` and raise the `PlayheadError` if nothing answers."""
        try:
            call.check()
        except PlayheadError as refused:
            call.end("error", None, record_of(refused, self._session.redactor.text))
            raise

    def _send(self, call: Call, item: Any, asked: dict[str, Any] | None) -> Any:
        """``asked``: the message as JSON values, if it wants an answer."""
        if asked is None:
            call.end("complete")
            return item
        self._pending[str(asked["id"])] = call
        if call.replaced is None:
            return item
        # A fork sends something else.
        meta = dict(asked.get("params") or {}).get("_meta")
        kept = {"_meta": meta} if meta else {}
        return self._kit.message({**asked, "params": {**json.loads(call.replaced)["params"], **kept}})

    def _send_again(
        self, played: PlayedExchange, call: Call, item: Any, asked: dict[str, Any] | None
    ) -> None:
        end = played.exchange.end
        if asked is not None and end is not None and is_rejection(end.error):
            call.end("error", None, end.error)
            raise again(end.error, OSError)
        self._told.append(item)
        if asked is None:
            call.end("complete")
            return
        self._pending[str(asked["id"])] = call
        self._now[str(played.exchange.ask.details.get(a.JSONRPC_REQUEST_ID, ""))] = asked["id"]
        with Shadow():
            self._tasks.start_soon(self._answer, call, played, asked["id"])

    async def received(self, item: Any) -> None:
        """A real server has sent a message, which the program is about to get."""
        plain = Kit.plain(item)
        call = None if "method" in plain else self._pending.pop(str(plain.get("id")), None)
        if call is None:
            self.call.part(_dumped(plain), await self.call.arrive())
            return
        at = await call.arrive()
        plain.pop("id", None)
        self._repeatable |= repeatable_tools(plain)
        call.part(_dumped(plain), at)
        call.end("complete", at)

    async def closed(self) -> None:
        """A real server sends no more."""
        if self.call.end("complete", await self.call.arrive()):
            self._session.open_exchanges.discard(self)

    def opened(self, opens: Callable[[], Any]) -> AbstractAsyncContextManager[Any]:
        """Context manager whose value is the streams of the connection. ``opens``: starts the server.

        Raises what starting it raises, and the `PlayheadError` if nothing answers.
        """
        self._check(self.call)
        return self.call.answer(self._live, self._again, opens)

    @asynccontextmanager
    async def _live(self, opens: Callable[[], Any]) -> AsyncGenerator[Any]:
        made = opens()
        try:
            with Shadow():
                streams = await made.__aenter__()
        except Exception as error:
            self._failed(error, await self.call.arrive())
            raise
        try:
            yield self._heard(*streams)
        except BaseException:
            with Shadow():
                if not await made.__aexit__(*sys.exc_info()):
                    raise
        else:
            with Shadow():
                await made.__aexit__(None, None, None)
        finally:
            self.abandoned()

    @asynccontextmanager
    async def _again(self, played: PlayedExchange, opens: Callable[[], Any]) -> AsyncGenerator[Any]:
        end = played.exchange.end
        if end is not None and end.error is not None and not played.exchange.parts:
            self.call.end("error", await self.call.arrive(), end.error)
            raise again(end.error, OSError)
        anyio = self._kit.anyio
        send, receive = anyio.create_memory_object_stream(float("inf"))
        self._inbox = send
        try:
            async with anyio.create_task_group() as self._tasks:
                with Shadow():
                    self._tasks.start_soon(self._speak, played)
                client = PlayedClient(self._kit, self._told, send, self._tasks)
                reopened = Reopened(self, client, opens, played.reopen)
                try:
                    yield receive, SentMessages(reopened, self)
                finally:
                    self._tasks.cancel_scope.cancel()
                    receive.close()
                    send.close()
        finally:
            self.abandoned()

    async def _answer(self, call: Call, played: PlayedExchange, id: Any) -> None:
        at = await call.arrive()
        end = played.exchange.end
        if not played.exchange.parts:
            call.end("abandoned" if end is None else end.how, at)
            return
        data = played.part(0)
        self._pending.pop(str(id), None)
        self._repeatable |= repeatable_tools(json.loads(data))
        call.part(data, at)
        call.end("complete", at)
        self._inbox.send_nowait(self._kit.message({**json.loads(data), "id": id}))

    async def _speak(self, played: PlayedExchange) -> None:
        for index in range(len(played.exchange.parts)):
            at = await self.call.arrive()
            data = played.part(index)
            self.call.part(data, at)
            self._inbox.send_nowait(self._said(json.loads(data)))
        if played.reopen is not None or played.exchange.end is None:
            return
        at = await self.call.arrive()
        if self.call.end("complete", at):
            self._session.open_exchanges.discard(self)
        self._inbox.close()

    def _said(self, plain: dict[str, Any]) -> Any:
        if "exception" in plain:
            return ValueError(plain["exception"])
        params = plain.get("params")
        token = str(cast("dict[str, Any]", params or {}).get("progressToken", ""))
        if token in self._now:
            plain["params"] = {**plain["params"], "progressToken": self._now[token]}
        return self._kit.message(plain)


class _Stream:
    """Wraps a stream."""

    def __init__(self, stream: Any, connection: Connection) -> None:
        self._stream = stream
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As the stream does."""
        with Shadow():
            await self._stream.aclose()


class SentMessages(_Stream):
    """Takes what the client sends and records it before it goes out."""

    async def send(self, item: Any) -> None:
        """As the stream does."""
        item = await self._connection.sent(item)
        if item is not None:
            with Shadow():
                await self._stream.send(item)


class ReceivedMessages(_Stream):
    """Returns what the server sends and records it before the program gets it."""

    def __aiter__(self) -> ReceivedMessages:
        return self

    async def __anext__(self) -> Any:
        with Shadow():
            try:
                item = await self._stream.__anext__()
            except StopAsyncIteration:
                item = None
        if item is None:
            await self._connection.closed()
            raise StopAsyncIteration
        await self._connection.received(item)
        return item

    async def receive(self) -> Any:
        """As the stream does."""
        try:
            with Shadow():
                item = await self._stream.receive()
        except Exception:
            await self._connection.closed()
            raise
        await self._connection.received(item)
        return item


def _dumped(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode(
        "utf-8", "surrogatepass"
    )
