"""Results of tools: whether one reports a failure, and whether two are the same.

Providers have no common way to mark a failed tool. Anthropic and Bedrock have a flag; for others,
frameworks write a text or an object that says so.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

from playhead_genai.messages import ToolCallResponse
from playhead_genai.readable_text import text_of

LONGEST_ERROR: Final = 500
"""Characters of an error that are kept."""

_FAILED: Final = re.compile(
    r"\s*(?:error\b|an error occurred|traceback \(most recent|exception:|\w+(?:error|exception): |"
    r"tool (?:call )?(?:failed|error)|failed to (?:call|execute|run) )",
    re.IGNORECASE,
)


def error_of(part: ToolCallResponse) -> str:
    """Return why a tool failed, as its result says; empty if it does not.

    >>> error_of(ToolCallResponse(id="1", response='{"error": "no such order"}'))
    'no such order'
    >>> error_of(ToolCallResponse(id="1", response="Error: timeout")), error_of(
    ...     ToolCallResponse(id="1", response="2 errors were found")
    ... )
    ('Error: timeout', '')
    """
    text = _text_in(part.response)
    if part.extras.get("is_error") is True or part.extras.get("status") == "error":
        return text[:LONGEST_ERROR] or "error"
    value = _decoded(part.response)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        error = fields.get("error")
        if error and error is not True:
            return _text_in(error)[:LONGEST_ERROR]
        if error is True or fields.get("is_error") is True or fields.get("isError") is True:
            return text[:LONGEST_ERROR]
    return text[:LONGEST_ERROR] if _FAILED.match(text) else ""


def is_same_value(body: bytes, result: Any) -> bool:
    """Return whether the body of a response is this result: equal text, or equal JSON.

    >>> is_same_value(b'{"t": 4}', {"t": 4}), is_same_value(b"4 degrees\\n", "4 degrees")
    (True, True)
    >>> is_same_value(b"", ""), is_same_value(b"4", "5")
    (False, False)
    """
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return False
    shown = _text_in(result).strip()
    if text == shown:
        return True
    try:
        return bool(json.loads(text) == _decoded(result))
    except (ValueError, RecursionError):
        return False


def _text_in(value: Any) -> str:
    """Return the text of a result, also of a list of content blocks."""
    if isinstance(value, list):
        texts = [
            str(block["text"]) for block in map(_fields, cast("list[Any]", value)) if "text" in block
        ]
        if texts:
            return "\n".join(texts)
    message = _fields(value).get("message")
    if isinstance(message, str):
        return message
    return "" if value is None else text_of(value)


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
