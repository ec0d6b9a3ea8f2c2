"""Results of tools: whether one reports a failure, and whether two are the same.

Providers have no common way to mark a failed tool. Anthropic and Bedrock have a flag; for others,
frameworks write a text or an object that says so.
"""

from __future__ import annotations

import ast
import json
import re
from functools import lru_cache
from typing import Any, Final, cast

from playhead_genai.messages import ToolCallResponse
from playhead_genai.readable_text import text_of

LONGEST_ERROR: Final = 500
"""Characters of an error that are kept."""
LONGEST_LITERAL: Final = 4000
"""Characters of an object in Python's own form that is read."""

_END: Final = r"(?:\W*$|\s*[:;.,–]|\s+-\s| (?:after|at|because|due|during|from|to|when|while|with)\b)"
"""What may follow words that say that something failed: after others it is a text about failures."""
_STATUS: Final = (
    r"[45]\d\d[ :-]+(?:bad (?:gateway|request)|client error|conflict|forbidden|gateway time|internal "
    r"server|not found|server error|service unavailable|too many|unauthori[sz]ed)"
)
_FAILED: Final = re.compile(
    r"\W{0,20}(?:sorry,? )?(?:"
    r"(?:tool_?|\w+ )?error(?: \d{3}(?:\W*$|\s*[:(\[–-]| [A-Z])|\s*[:(\[\]>–]|\s+-\s|\W*$| (?:occurred|"
    r"while|"
    r"in|executing|calling|invoking|running|fetching)\b)|"
    r"an? (?:\w+ )?(?:error|exception) (?:has )?occurred|(?:exception|error) occurred|"
    r"something went wrong|"
    r"traceback \(most recent|(?:uncaught |fatal )?exception(?: in \w+)?:|failed:|fatal:|curl: \(\d|"
    r"[\w.]*(?:error|exception|timeout|expired)(?:: |\(['\"])|tool (?:call |execution )?(?:failed|"
    r"error)|"
    r"(?:failed|unable) to (?:call|connect|execute|fetch|get|load|look ?up|open|parse|query|reach|read|"
    r"resolve|retrieve|run|search|access|contact) |(?:cannot|can't|could not|couldn't) (?:access|call|"
    r"connect|contact|execute|fetch|load|look ?up|open|parse|query|reach|resolve|retrieve)(?::| (?:an?|"
    r"any|"
    r"data|from|host|that|the|this|to|url|your)\b)|"
    r"(?:(?:the )?(?:\w+ )?(?:api|call|command|connection|database|fetch|network|operation|query|rate|"
    r"request|"
    r"search|server|service|tool|key|session|token|quota)\b[\w ]{0,25}\b(?:failed|timed out|refused|"
    r"unavailable|error|limited|exceeded|expired|reset)|(?:access|permission) denied|unauthori[sz]ed|"
    r"forbidden|(?:you are |user is )?not (?:authenticated|authori[sz]ed)|internal server error|"
    r"bad gateway|(?:gateway )?time-?out|(?:request )?timed out|(?:authentication|login) failed|"
    r"(?:invalid|missing) (?:api key|access token|token|credentials|response|request|json)|"
    r"(?:fetch|socket) (?:failed|hang up))" + _END + r"|"
    r"(?:authentication|login) required\W*$|no response from\b|"
    r"(?:the )?(?:\w+ )?(?:api|server|service) (?:answered|responded|"
    r"returned)(?: with)?(?: an?)?(?: http)? "
    r"(?:error|status)|(?:\w+ )?e(?:ai_again|conn(?:aborted|refused|reset)|notfound|timedout)\b|"
    r"getaddrinfo |\S+: (?:\S+: )?command not found|too many requests|"
    r"(?:http |status |code )+[45]\d\d\b|(?:http|status|code)(?: code)?:? [45]\d\d\b|" + _STATUS + r")",
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
    "error errors message body status code detail details type __type title instance success ok failed "
    "is_error iserror statuscode status_code error_description error_code error_type error_message "
    "errorcode errortype errormessage err fault exception reason path timestamp request_id requestid "
    "trace_id retryable retry_after".split()
)
"""Fields of a result that only reports its error, in lower case."""
_ERRORS: Final = ("error", "error_message", "errorMessage")
"""Fields that hold an error."""
_ONLY_ERRORS: Final = ("err", "exception", "fault")
"""Fields that hold an error if there is nothing else."""
_REFUSALS: Final = frozenset((400, 401, 403, 404, 405, 408, 409, 410, 413, 422, 429, *range(500, 505)))
"""Statuses that are told from other numbers in a field `code`."""
_FAILURES: Final = frozenset(
    ("error", "failed", "failure", "timeout", "timed_out", "timed out", "unavailable")
)
_SUCCESSES: Final = frozenset(("ok", "success", "succeeded", "completed", "done", "200"))
_TOLD: Final = ("message", "Message", "error_description", "detail", "reason")
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
    if isinstance(value, str) and value.startswith("{'") and len(value) <= LONGEST_LITERAL:
        value = _literal(value)
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
    fields = {name: value for name, value in fields.items() if value is not None}
    state = str(fields.get("status", "")).lower()
    success = str(fields.get("ok", fields.get("success", ""))).lower()
    is_only_error = {name.lower() for name in fields} <= _ABOUT_ERRORS
    if success == "true" or state in _SUCCESSES:
        return ""
    if reports and not is_only_error:
        return ""
    told = next((fields[name] for name in _TOLD if fields.get(name)), None)
    names = (*_ERRORS, *_ONLY_ERRORS) if is_only_error else _ERRORS
    for error in (fields[name] for name in names if name in fields):
        if error is True:
            return _text_in(fields)
        if error and isinstance(error, str | dict | list):
            text = _text_in(error)
            return "" if text.lower() in _NO_ERROR else text
    if success == "false" or state in _FAILURES or (fields.get("failed") is True and is_only_error):
        is_failure = not judges and (is_only_error or state not in _FAILURES)
        return text_of(fields if told is None else told) if is_failure else ""
    errors = fields.get("errors")
    if isinstance(errors, list) and errors and fields.get("data") is None and not judges:
        return _text_in(cast("list[Any]", errors)[0])
    if not is_only_error:
        return ""
    status = fields.get("status_code", fields.get("statusCode", fields.get("status")))
    is_refusal = "__type" in fields or fields.get("code") in _REFUSALS
    is_refusal = is_refusal or (isinstance(status, int) and 400 <= status < 600)
    return text_of(fields) if is_refusal or (isinstance(told, str) and _FAILED.match(told)) else ""


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


def _literal(text: str) -> Any:
    """Return the object that Python writes like this; the text if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
