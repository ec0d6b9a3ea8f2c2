"""Connections that a program holds, and what of them a server that is started anew can be told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from playhead_semconv.facts import Exchange

STDIO = "stdio "
"""How the key of a connection to an MCP server on stdio begins; its command line follows."""

READS = ("/list", "/read", "/get", "initialize", "ping", "discover", "completion/complete")
"""How methods of MCP end that change nothing."""

OF_SESSION = ("notifications/", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
"""How methods begin that concern the session alone."""

HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
"""What a client says before it asks for anything."""


CONNECTIONS = ("websocket", "grpc", "process")
"""Kinds of exchanges in which much may be said."""


def is_server(exchange: Exchange) -> bool:
    """Whether an exchange is a connection to a server that the program has started."""
    return exchange.id.kind == "mcp" and exchange.ask.key.startswith(STDIO)


def goes_on(exchange: Exchange) -> bool:
    """Whether what an exchange began with is played, and the world goes on where the tape ends."""
    return is_server(exchange) or (exchange.id.kind == "stdin" and exchange.ask.key == "stdin")


def stays_open(exchange: Exchange) -> bool:
    """Whether an exchange is a connection (or a child) that was there, and has not ended."""
    begun = bool(exchange.head) or bool(exchange.parts)
    return exchange.id.kind in CONNECTIONS and begun and exchange.end is None


def reads(method: str, tool: str = "", repeatable: Iterable[str] = ()) -> bool:
    """Whether a message of an MCP client changes nothing. ``repeatable``: tools that say so."""
    return method.endswith(READS) or (method == "tools/call" and tool in repeatable)


def repeatable_tools(listed: Any) -> set[str]:
    """The tools that may be called again, by what they say in an answer to ``tools/list``."""
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
    """Whether a message to a server may have done something that is not to be done again."""
    key = exchange.ask.key
    of_session = is_server(exchange) or key.startswith(OF_SESSION) or key == "answer"
    return exchange.id.kind == "mcp" and exchange.ask.effect == "write" and not of_session
