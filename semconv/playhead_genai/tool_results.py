"""Results of tools: whether one reports a failure, and whether two are the same.

Providers have no common way to mark a failed tool. Anthropic and Bedrock have a flag; for others,
frameworks write a text or an object that says so.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final, cast

from playhead_genai.messages import ToolCallResponse
from playhead_genai.readable_text import text_of

LONGEST_ERROR: Final = 500
"""Characters of an error that are kept."""

_FAILED: Final = re.compile(
    r"\s*(?:error(?: \d{3}\b|\s*[:(\[–-]| (?:occurred|while|in|executing|calling|invoking|running|"
    r"fetching)\b|\W*$)|an (?:unexpected )?error occurred|traceback \(most recent|exception:|"
    r"[\w.]*(?:error|exception|timeout|expired): |tool (?:call |execution )?(?:failed|error)|"
    r"(?:failed|unable) to (?:call|execute|run|fetch|connect|reach|get|load|retrieve|query|search) |"
    r"(?:the )?(?:request|call|connection|query|search|fetch|operation|api|service|server|tool|rate)\b"
    r"[\w ]{0,20}\b(?:failed|timed out|refused|unavailable|error|limited|limit exceeded)\b|"
    r"too many requests|(?:http |status |code )+[45]\d\d\b|[45]\d\d (?:bad|unauthorized|forbidden|not|"
    r"internal|service|gateway|client|server)\b)",
    re.IGNORECASE,
)
_EXCEPTION: Final = re.compile(
    r"\s*(?:[Tt]raceback \(most recent|(?:Error: )?[\w.]+(?:Error|Exception|Timeout): |"
    r"(?:error|failed) (?:executing|calling|invoking|to))"
)
_REPORTING: Final = re.compile(
    r"(?:^|_)(?:logs?|errors?|incidents?|alerts?|tests?|lint\w*|compile|build|stderr|diagnos\w*|traces?|"
    r"exceptions?|explain)(?:_|$)"
)
"""Names of tools whose results are about failures and succeed all the same."""
_JUDGING: Final = re.compile(
    r"(?:^|_)(?:check|status|health|validate|verify|poll|job|is|has|can|eligib\w*|monitor\w*|approv\w*)"
    r"(?:_|$)"
)
"""Names of tools whose answer may be no."""
_ABOUT_ERRORS: Final = frozenset(
    "error errors message body status code detail details type success ok is_error isError statusCode "
    "status_code error_description error_code error_type reason request_id retryable".split()
)
"""Fields of a result that only reports its error."""
_FAILURES: Final = frozenset(("error", "failed", "failure", "timeout", "timed_out", "unavailable"))
_SUCCESSES: Final = frozenset(("ok", "success", "succeeded", "completed", "done", "200"))
_TOLD: Final = ("message", "error_description", "detail", "reason")
_NO_ERROR: Final = frozenset(("", "0", "none", "null", "no", "ok", "false", "n/a", "success"))


def error_of(part: ToolCallResponse, tool: str = "") -> str:
    """Return why a tool failed, as its result says; empty if it does not.

    ``tool``: its name. The result of one that reads logs may begin with "Error" and be right.

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
    name = in_words(tool)
    reports = _REPORTING.search(name) is not None
    value = _decoded(part.response)
    if isinstance(value, dict):
        judges = reports or _JUDGING.search(name) is not None
        found = _error_in(cast("dict[str, Any]", value), reports=reports, judges=judges)
        return found[:LONGEST_ERROR]
    return text[:LONGEST_ERROR] if (_EXCEPTION if reports else _FAILED).match(text) else ""


@lru_cache(maxsize=256)
def in_words(name: str) -> str:
    """Return a name of a tool in lower case with its words apart.

    >>> in_words("webSearch"), in_words("get-HTTP.logs")
    ('web_search', 'get_http_logs')
    """
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _error_in(fields: dict[str, Any], *, reports: bool, judges: bool) -> str:
    """Return the error that an object reports.

    ``reports``: the error may be what was asked for. ``judges``: so may "no".
    """
    if fields.get("is_error") is True or fields.get("isError") is True:
        return _text_in(fields)
    state = str(fields.get("status", "")).lower()
    is_only_error = fields.keys() <= _ABOUT_ERRORS
    if fields.get("ok") is True or fields.get("success") is True or state in _SUCCESSES:
        return ""
    if reports and not is_only_error:
        return ""
    error = fields.get("error")
    if error is True:
        return _text_in(fields)
    if error and isinstance(error, str | dict | list):
        text = _text_in(error)
        return "" if text.lower() in _NO_ERROR else text
    if fields.get("ok") is False or fields.get("success") is False or state in _FAILURES:
        told = next((fields[name] for name in _TOLD if fields.get(name)), None)
        is_failure = not judges and (is_only_error or state not in _FAILURES)
        return text_of(fields if told is None else told) if is_failure else ""
    errors = fields.get("errors")
    if isinstance(errors, list) and errors and fields.get("data") is None and not judges:
        return _text_in(cast("list[Any]", errors)[0])
    status = fields.get("status_code", fields.get("statusCode", fields.get("status")))
    is_refusal = isinstance(status, int) and 400 <= status < 600
    return text_of(fields) if is_refusal and is_only_error else ""


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
