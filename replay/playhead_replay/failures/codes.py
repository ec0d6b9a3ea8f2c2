"""Types and codes of failures, and which one an error is, by its status, exception and text."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

FailureType: TypeAlias = Literal["tool", "model", "retrieval", "orchestration"]

CODES: Final[dict[FailureType, tuple[str, ...]]] = {
    "tool": ("timeout", "invalid_response", "connection_error", "api_error", "auth_error"),
    "model": (
        "rate_limit",
        "context_length_exceeded",
        "invalid_output",
        "timeout",
        "quota_exceeded",
        "cut_off",
        "content_filter",
        "connection_error",
        "auth_error",
        "api_error",
    ),
    "retrieval": ("no_results", "connection_error", "timeout", "invalid_query", "api_error"),
    "orchestration": (
        "max_retries_exceeded",
        "invalid_state",
        "constraint_violation",
        "uncaught_exception",
    ),
}
"""The codes that are derived, by type. Programs may use others."""

_MEANINGS: Final[tuple[tuple[str, str, frozenset[int]], ...]] = (
    (
        "quota_exceeded",
        r"insufficient_quota|exceeded your (?:current )?quota|billing (?:hard )?limit|credit balance|"
        r"payment required",
        frozenset((402,)),
    ),
    (
        "context_length_exceeded",
        r"context_length|context length|context window|prompt is too long|input is too long|"
        r"maximum (?:input )?(?:context|tokens?)|too many (?:input )?tokens",
        frozenset(),
    ),
    (
        "rate_limit",
        r"rate.?limit|throttl|too ?many ?requests|overloaded|resource.?exhausted",
        frozenset((429, 529)),
    ),
    (
        "auth_error",
        r"authenticat|unauthori[sz]ed|permission.?denied|forbidden|invalid api key|access.?denied",
        frozenset((401, 403)),
    ),
    ("timeout", r"time.?out|timed out|deadline.?exceeded", frozenset((408, 504))),
    (
        "connection_error",
        r"connect(?:ion)?.?(?:error|refused|reset|aborted|closed)|remoteprotocol|incompleteread|"
        r"readerror|writeerror|brokenpipe|getaddrinfo|name or service|unreachable|socket\.|ssl.?error|"
        r"\bunavailable\b",
        frozenset(),
    ),
    (
        "invalid_query",
        r"invalid.?query|syntax error|malformed query|(?:query|filter) (?:is )?(?:invalid|malformed)|"
        r"parse.?error|badrequest",
        frozenset((400, 422)),
    ),
    (
        "invalid_response",
        r"jsondecode|not valid json|invalid json|invalid.?response|unexpected response|decodingerror|"
        r"malformed response|unicodedecode",
        frozenset(),
    ),
    (
        "invalid_output",
        r"jsondecode|invalid json|validationerror|outputparser|invalid.?output|modelretry|"
        r"unexpectedmodelbehavior|contentfilterfinish|lengthfinish",
        frozenset(),
    ),
)
"""Codes with the texts and HTTP statuses that mean them, the most specific first."""

_PATTERNS: Final = tuple(
    (code, re.compile(pattern, re.IGNORECASE), statuses) for code, pattern, statuses in _MEANINGS
)
_ORCHESTRATION: Final = tuple(
    (code, re.compile(pattern, re.IGNORECASE))
    for code, pattern in (
        (
            "max_retries_exceeded",
            r"recursion|max\w*(?:turns|iterations|retries|steps)|usagelimit|retryerror",
        ),
        ("constraint_violation", r"guardrail|tripwire|constraint|policy|moderation|controlrejected"),
        ("invalid_state", r"invalid\w*(?:state|update|transition|graph)|stateerror|illegalstate"),
    )
)
LONGEST_TEXT: Final = 4000
"""Characters of an error that are searched: it may hold a whole page."""


def code_of(kind: FailureType, text: str, status: int | None = None) -> str:
    """Return the code of an error of a model, a tool or a retrieval. A status counts before the text.

    >>> code_of("model", "openai.RateLimitError: You exceeded your current quota", 429)
    'quota_exceeded'
    >>> code_of("tool", "builtins.TimeoutError: no answer"), code_of("tool", "ValueError: no order")
    ('timeout', 'api_error')
    """
    known, text = CODES[kind], text[:LONGEST_TEXT]
    for code in ("quota_exceeded", "context_length_exceeded"):
        if code in known and next(one for one in _PATTERNS if one[0] == code)[1].search(text):
            return code
    by_status = (code for code, _, statuses in _PATTERNS if code in known and status in statuses)
    by_text = (code for code, pattern, _ in _PATTERNS if code in known and pattern.search(text))
    return next(by_status, "") or next(by_text, "api_error")


def orchestration_code(exception: str) -> str:
    """Return the code of an exception that ended an agent, a workflow or the program.

    >>> orchestration_code("langgraph.errors.GraphRecursionError"), orchestration_code("KeyError")
    ('max_retries_exceeded', 'uncaught_exception')
    """
    text = exception[:LONGEST_TEXT]
    return next((code for code, pattern in _ORCHESTRATION if pattern.search(text)), "uncaught_exception")
