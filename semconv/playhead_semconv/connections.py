"""Connections that a program holds, and what of them can be told again to a server that is started anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead_semconv.facts import Exchange

STDIO = "stdio "
"""How the key of a connection to an MCP server on stdio begins; its command line follows."""

READS = ("/list", "/read", "/get", "initialize", "ping", "discover", "completion/complete")
"""How methods of MCP end that change nothing."""

OF_SESSION = ("notifications/", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
"""How methods begin that concern the session alone."""

HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
"""What a client says before it asks for anything."""


def is_server(exchange: Exchange) -> bool:
    """Whether an exchange is a connection to a server that the program has started."""
    return exchange.id.kind == "mcp" and exchange.ask.key.startswith(STDIO)


def reads(method: str, tool: str = "", repeatable: Iterable[str] = ()) -> bool:
    """Whether a message of an MCP client changes nothing. ``repeatable``: tools that say so themselves."""
    return method.endswith(READS) or (method == "tools/call" and tool in repeatable)


def repeatable_tools(listed: Any) -> set[str]:
    """The tools that may be called again, in an answer to ``tools/list``: by what they say of themselves."""
    found: set[str] = set()
    result = listed.get("result") if isinstance(listed, dict) else None
    tools = result.get("tools") if isinstance(result, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        hints = tool.get("annotations") if isinstance(tool, dict) else None
        if isinstance(hints, dict) and (hints.get("readOnlyHint") or hints.get("idempotentHint")):
            found.add(str(tool.get("name")))
    return found


def may_not_repeat(exchange: Exchange) -> bool:
    """Whether a message to a server may have done something that is not to be done again."""
    key = exchange.ask.key
    of_session = is_server(exchange) or key.startswith(OF_SESSION) or key == "answer"
    return exchange.id.kind == "mcp" and exchange.ask.effect == "write" and not of_session
