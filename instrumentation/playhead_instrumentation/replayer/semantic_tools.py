"""Answers of tools in a semantic replay: of marked functions, and of servers of MCP on stdio.

A tool is answered by the span that has its name and its arguments. The server of MCP itself is made up:
it offers the tools that the spans know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from playhead_core.errors import TapeError
from playhead_core.facts import Ask, Content, End, Exchange, ExchangeId, Fidelity, Part
from playhead_core.rerun.open_connections import STDIO
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.rebuilding.tools import RebuildableTool, RecordedTools
from playhead_instrumentation.recorder.decision import RETURNS, Played
from playhead_semconv import attributes as a


class AnsweredTools:
    """The tools of a run. Safe from any thread."""

    def __init__(self, tape: IndexedTape, recorded: Sequence[Exchange]) -> None:
        self._instance: Final = tape.instance
        self._recorded: Final = recorded
        self._tools: Final = [RebuildableTool.decoded(tape.read(one.ask.body)) for one in recorded]
        self._unused: Final = RecordedTools(self._tools)

    def marked(self, ask: Ask, body: bytes) -> Played | None:
        """Return the answer to a call of a marked function; None: it runs."""
        if ask.details.get(a.PLAYHEAD_TOOL_FORM) != "call":  # a span does not have what is yielded
            return None
        returns = str(ask.details.get(RETURNS, ""))
        number = self._unused.take(ask.key, _parsed(body), returns)
        kept = None if number is None else self._tools[number].returned(returns)
        if number is None or kept is None:
            return None
        return self._played(self._recorded[number], b'{"return":%s}' % kept)

    def of_server(self, id: ExchangeId, ask: Ask, body: bytes) -> Played | None:
        """Return the answer of a server of MCP; None: no span has it."""
        made_up = Exchange(id, ask, self._recorded[0].time_ns) if self._recorded else None
        if made_up is None:
            return None
        if ask.key.startswith(STDIO):  # the connection, which stays open
            return self._played(made_up, None, ends=False)
        asked: dict[str, Any] = _parsed(body) or {}
        method = ask.details.get(a.MCP_METHOD_NAME)
        parameters: dict[str, Any] = asked.get("params") or {}
        if a.JSONRPC_REQUEST_ID not in ask.details:
            return self._played(made_up, None)
        if method == "tools/call":
            name, arguments = str(parameters.get("name", "")), parameters.get("arguments")
            number = self._unused.take(name, {} if arguments is None else arguments, None)
            if number is None:
                return None
            return self._played(self._recorded[number], _response(self._tools[number].as_mcp()))
        if method == "initialize":
            server = {"name": str(asked.get("server", "")), "version": ""}
            version = parameters.get("protocolVersion")
            able: dict[str, Any] = {"tools": {}}
            result = {"protocolVersion": version, "capabilities": able, "serverInfo": server}
            return self._played(made_up, _response(result))
        if method == "tools/list":
            return self._played(made_up, _response({"tools": self._offered()}))
        return self._played(made_up, _response({})) if method == "ping" else None

    def _offered(self) -> list[dict[str, Any]]:
        """The tools that a server has executed, else all."""
        of_servers = [one for one in self._tools if one.is_mcp] or self._tools
        found = {one.name: one for one in of_servers}
        return [
            {
                "name": one.name,
                "description": one.description,
                "inputSchema": one.parameters or {"type": "object"},
            }
            for one in found.values()
        ]

    def _played(self, exchange: Exchange, answer: bytes | None, *, ends: bool = True) -> Played:
        now = exchange.time_ns
        parts = [] if answer is None else [Part(Content.chunk(answer), now, None)]
        made = msgspec.structs.replace(exchange, parts=parts, end=End("complete") if ends else None)
        return Played(
            made,
            self._instance,
            read_inline,
            fidelity=Fidelity.SEMANTIC,
            elsewhere=False,
            made=True,
        )


def read_inline(content: Content) -> bytes:
    """Return the bytes of an answer that was made up."""
    if content.inline is None:
        raise TapeError("a rebuilt answer has no other content")
    return content.inline


def _response(result: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "result": result})


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
