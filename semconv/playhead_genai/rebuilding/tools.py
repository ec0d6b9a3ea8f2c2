"""A tool call as a span tells it: arguments and result, and what a program can be given of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

KIND: Final = "semantic_tool"
"""Kind of the exchanges of a tape that was made from spans; the body of each is a `RebuildableTool`."""

_TYPES: Final[dict[str, type[Any] | tuple[type[Any], ...]]] = {
    "dict": dict,
    "list": list,
    "int": int,
    "float": float,
    "bool": bool,
    "None": type(None),
}
"""Return types of functions whose values JSON can tell apart."""


class RebuildableTool(msgspec.Struct, frozen=True):
    """A tool call that ended well."""

    name: str
    arguments: Any
    """By the names of parameters."""
    result: Any
    """As the span has it: usually a text."""
    is_exact: bool
    """Whether playhead recorded the result, as JSON text of a value."""
    is_mcp: bool = False
    """Whether a server of MCP has executed it, as far as the span says."""
    description: str = ""
    parameters: Any = None
    """JSON schema of the arguments; None if no span has it."""

    def encoded(self) -> bytes:
        """Return it as JSON, for `decoded`."""
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, data: bytes) -> RebuildableTool:
        """Return the inverse of `encoded`. ValueError if ``data`` is something else."""
        return msgspec.json.decode(data, type=cls)

    def returned(self, returns: str) -> bytes | None:
        """Return what the function returned, as JSON; None if the span does not say it for certain.

        ``returns``: name of the type that the function says it returns, e.g. ``dict``; or empty. A text
        of another recorder may be the value itself or its JSON, and only that type says which.
        """
        result = self.result
        if self.is_exact:
            return result.encode() if isinstance(result, str) and _is_json(result) else None
        if isinstance(result, str):
            is_json, value = _decoded(result)
            if returns == "str":
                return msgspec.json.encode(value if isinstance(value, str) else result)
            if not is_json:
                return None
            result = value
        expected = _TYPES.get(returns)
        is_number = isinstance(result, int) and not isinstance(result, bool)
        if expected is None or not (isinstance(result, expected) or (expected is float and is_number)):
            return None
        if isinstance(result, bool) and expected is int:
            return None
        return msgspec.json.encode(result)

    def as_mcp(self) -> dict[str, Any]:
        """Return the result as a server of MCP answers it: what it said, or the text of the span."""
        value = _decoded(self.result)[1] if isinstance(self.result, str) else self.result
        fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if isinstance(fields.get("content"), list):
            return fields
        text = self.result
        if isinstance(value, str):
            text = value
        elif not isinstance(text, str):
            text = msgspec.json.encode(text).decode()
        return {"content": [{"type": "text", "text": text}], "isError": False}


class RebuildableTools:
    """The tool calls of a run, each of which answers once. Safe from any thread."""

    def __init__(self, tools: Sequence[RebuildableTool]) -> None:
        """``tools``: in the order in which they were called."""
        self._tools = tools
        self._used: set[int] = set()
        self._lock = threading.Lock()

    def take(self, name: str, arguments: Any, returns: str | None) -> int | None:
        """Return the number of the first unused call with the same arguments; None: there is none.

        ``returns``: as in `RebuildableTool.returned`, which has to know the value; None: any will do.
        """
        with self._lock:
            for number, tool in enumerate(self._tools):
                if number in self._used or (tool.name, tool.arguments) != (name, arguments):
                    continue
                if returns is None or tool.returned(returns) is not None:
                    self._used.add(number)
                    return number
        return None


def arguments_in(value: Any) -> Any:
    """Return the arguments in an attribute, which may be JSON text."""
    found = _decoded(value)[1] if isinstance(value, str) else value
    return {} if found is None or found == "" else found


def _is_json(text: str) -> bool:
    return _decoded(text)[0]


def _decoded(text: str) -> tuple[bool, Any]:
    """Return whether a text is JSON, and its value; else None."""
    try:
        return True, msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False, None
