"""Open connections at the end of a tape, and whether they may continue with a new server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from playhead_core.facts import Exchange

STDIO = "stdio "
"""Prefix of the key of a connection to a stdio MCP server; its command line follows."""

READS = ("/list", "/read", "/get", "initialize", "ping", "discover", "completion/complete")
"""Suffixes of the MCP methods that change nothing."""

OF_SESSION = ("notifications/", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
"""Prefixes of the methods that concern only the session."""

HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
"""Messages that a client sends before its first request."""


CONNECTIONS = ("websocket", "grpc", "process")
"""Kinds of exchanges that can hold many messages."""


def is_server(exchange: Exchange) -> bool:
    """Whether an exchange is a connection to a server that the program has started."""
    return exchange.id.kind == "mcp" and exchange.ask.key.startswith(STDIO)


def continues_live(exchange: Exchange) -> bool:
    """Whether an exchange is replayed up to the end of the tape and continues live there."""
    return is_server(exchange) or (exchange.id.kind == "stdin" and exchange.ask.key == "stdin")


def stays_open(exchange: Exchange) -> bool:
    """Whether an exchange is a connection (or a child) that was established and has not ended."""
    begun = bool(exchange.head) or bool(exchange.parts)
    return exchange.id.kind in CONNECTIONS and begun and exchange.end is None


def reads(method: str, tool: str = "", repeatable: Iterable[str] = ()) -> bool:
    """Whether a message of an MCP client changes nothing. ``repeatable``: tools declared repeatable."""
    return method.endswith(READS) or (method == "tools/call" and tool in repeatable)


def repeatable_tools(listed: Any) -> set[str]:
    """Return the tools declared repeatable in an answer to ``tools/list``."""
    tools = _at(_at(listed, "result"), "tools")
    found: set[str] = set()
    for tool in cast("list[Any]", tools) if isinstance(tools, list) else ():
        hints = _at(tool, "annotations")
        if _at(hints, "readOnlyHint") or _at(hints, "idempotentHint"):
            found.add(str(_at(tool, "name")))
    return found


def _at(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def may_not_repeat(exchange: Exchange) -> bool:
    """Whether a message to a server may have had an effect that must not be repeated."""
    key = exchange.ask.key
    of_session = is_server(exchange) or key.startswith(OF_SESSION) or key == "answer"
    return exchange.id.kind == "mcp" and exchange.ask.effect == "write" and not of_session
