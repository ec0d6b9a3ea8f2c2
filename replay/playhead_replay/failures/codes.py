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
        r"insufficient.?(?:quota|balance|credits?|funds)|exceeded your (?:\w+ )?(?:quota|usage|spend)|"
        r"billing.?(?:hard.?)?limit|credit balance|(?:out of|available|remaining) credits|"
        r"payment required|quota.?exceeded|exceeded.{0,40}quota|trial key|"
        r"(?:monthly|daily|spend(?:ing)?|usage|plan).(?:limit|cap|quota)",
        frozenset((402,)),
    ),
    (
        "context_length_exceeded",
        r"context.?(?:length|window|size)|(?:prompt|input|request|messages?) (?:is|are|was) too (?:long|"
        r"large)|maximum (?:input |prompt )?(?:context|tokens?|length)|too many (?:input )?tokens|"
        r"token.{0,60}exceeds?|exceeds?.{0,60}tokens|reduce (?:the length|your prompt)|"
        r"request_too_large|too large for model",
        frozenset((413,)),
    ),
    (
        "rate_limit",
        r"rate.?limit|throttl|too ?many ?requests|overloaded|resource.?exhausted|slow ?down|at capacity|"
        r"(?:requests|tokens) per (?:second|minute|hour|day)",
        frozenset((429, 529)),
    ),
    (
        "auth_error",
        r"authenticat|unauthori[sz]ed|not authori[sz]ed|permission.?(?:denied|error)|forbidden|"
        r"access.?denied|log.?in (?:failed|required)|(?<!\()(?:invalid|bad|missing|expired|wrong|no)[ _]"
        r"(?:api.?)?(?:key|credential|grant|access.?token|token|password|signature)|"
        r"(?:key|token|credentials?|session) (?:\w+ ){0,2}(?:expired|invalid|revoked|rejected|missing|"
        r"not valid)|insufficient.(?:permission|privilege|scope)|signature.?does.?not.?match|"
        r"(?:no.?|locate )credentials|expired.?token|(?:token|jwt)\b.{0,40}\bexpired",
        frozenset((401, 403)),
    ),
    (
        "timeout",
        r"time[-_ ]?out|timed[-_ ]?out|deadline.?exceeded|took too long|time limit|"
        r"(?:no|did not|didn't) (?:answer|respon\w+|complete|finish)\w* (?:within|after|in) ",
        frozenset((408, 504)),
    ),
    (
        "invalid_query",
        r"invalid.{0,20}(?:query|filter|expression|search|sql|cypher)|syntax.?error|malformed|"
        r"(?:query|filter) (?:is |was )?(?:\w+ )?(?:invalid|malformed|empty|too long|unparsable)|"
        r"pars(?:e|ing).?(?:error|exception)|badrequest|bad.?query|unexpected token|unbalanced|"
        r"unterminated|(?:query|filter) (?:must|can)|\bdim(?:ension)?s?\b.{0,20}(?:error|mismatch)|"
        r"(?:cannot|could not|failed to) parse|no such (?:column|table|field|index)|"
        r"unknown (?:column|table|field|query|operator)|(?:column|relation) .{1,80} does not exist",
        frozenset((400, 422)),
    ),
    (
        "invalid_response",
        r"json.?decode|not (?:valid|a valid|proper|parsable) json|invalid json|expecting value|"
        r"(?:invalid|unexpected|malformed|garbled|unreadable|corrupt\w*) (?:response|reply|content|"
        r"format|payload|body|answer|data)|invalid.?response|decod(?:e|ing).?error|unicodedecode|"
        r"(?:cannot|could not|failed to|unable to) (?:parse|decode|deserialize)|incorrect header check|"
        r"validation.?errors?\b|schema (?:violation|mismatch)|match(?:es)? (?:the )?(?:\w+ )?schema|"
        r"badstatusline|illegal (?:status line|header)|missing (?:required |expected )?field|"
        r"malformed|not well-formed|unexpected token",
        frozenset(),
    ),
    (
        "connection_error",
        r"connect(?:ion|or)?.?(?:\w+ )?(?:error|refused|reset|aborted|closed|lost|failed|broken)|"
        r"(?:cannot|can't|could not|couldn't|unable to|failed to) (?:establish|connect|reach|resolve)|"
        r"remote.?(?:end closed|disconnected|protocol)|incompleteread|server disconnected|"
        r"socket hang up|peer closed|"
        r"readerror|writeerror|broken.?pipe|getaddrinfo|gaierror|name or service|name resolution|"
        r"nodename nor|no route to host|unreachable|socket\.|ssl.?error|max retries exceeded with url|"
        r"ECONN|ENOTFOUND|EAI_AGAIN|statuscode\.unavailable|^\W*(?:error: )?unavailable\b",
        frozenset(),
    ),
    (
        "invalid_output",
        r"json.?decode|invalid json|validation.?error|outputparser|invalid.?output|modelretry|"
        r"unexpectedmodelbehavior|modelbehavior|contentfilterfinish|lengthfinish|malformed|"
        r"response.?validation",
        frozenset(),
    ),
)
"""Codes with the texts and HTTP statuses that mean them, the most specific first."""

_PATTERNS: Final = tuple(
    (code, re.compile(pattern, re.IGNORECASE), statuses) for code, pattern, statuses in _MEANINGS
)
_TEXT_OF: Final = {code: pattern for code, pattern, _ in _PATTERNS}
_BY_TEXT_FIRST: Final = ("quota_exceeded", "context_length_exceeded")
"""Codes that providers answer with a status which says less."""
_STATUS: Final = re.compile(
    r"(?:\bhttp(?:/\d(?:\.\d)?)?|\bstatus(?:[ _-]?code)?|\b(?:error|response)(?:[ _-]?code)?|\bcode|"
    r"\breturned)['\"]?\W{0,3}([45]\d\d)\b|\b([45]\d\d):? (?:client|server|bad|unauthorized|payment|"
    r"forbidden|not|method|request|conflict|gone|payload|unprocessable|too|internal|service|gateway)",
    re.IGNORECASE,
)
_PER_TIME: Final = re.compile(r"per.?(?:second|minute)", re.IGNORECASE)
_ORCHESTRATION: Final = tuple(
    (code, re.compile(pattern, re.IGNORECASE))
    for code, pattern in (
        (
            "max_retries_exceeded",
            r"graph.?recursion|recursion.?limit|max(?:imum)?.?(?:number.of.)?(?:turn|iteration|retr|step|"
            r"attempt|round)|too.?many.?(?:turn|iteration|retr|step|attempt|round)|retryerror|"
            r"(?:turn|iteration|retry|step|attempt|round|request|tool_calls)s?.?limit|"
            r"g[ai]ve? up|(?:retries|attempts|tries) (?:have )?failed|"
            r"(?:no|without) \w+ after \d+ \w+|after \d+ (?:attempts|retries|tries|turns|steps)|"
            r"(?:turn|iteration|retr|step|attempt)\w* (?:were |was |are |is )?(?:exhausted|exceeded)",
        ),
        (
            "constraint_violation",
            r"guard.?rail|tripwire|constraint|polic(?:y|ies)|moderation|controlrejected|violat|"
            r"(?:budget|cost|spend\w{0,9}|usage |token\w{0,9}).{0,12}(?:exceeded|limit|exhausted)|"
            r"exceed\w{0,20}.{0,20}(?:budget|allowance)|not (?:allowed|permitted)|disallowed|forbidden|"
            r"blocked|approval.{0,20}(?:denied|required|rejected)|rejected by|unsafe",
        ),
        (
            "invalid_state",
            r"(?:invalid|illegal|unexpected|inconsistent|unknown|bad|wrong)\w{0,20}.{0,12}(?:state|update|"
            r"transition|graph|phase|status)|state.?(?:error|machine)|machine.?error|"
            r"(?:cannot|can't|may not|not allowed to) (?:transition|go|move|change|trigger) |"
            r"already (?:finished|completed|done|closed|cancelled|running)|not in (?:the |a )?state",
        ),
    )
)
_OF_CODE: Final = frozenset(
    "ArithmeticError AttributeError IndexError ImportError KeyError ModuleNotFoundError NameError "
    "RecursionError SyntaxError TypeError UnboundLocalError ZeroDivisionError".split()
)
LONGEST_TEXT: Final = 4000
"""Characters of an error that are searched: it may hold a whole page."""


def code_of(kind: FailureType, text: str, status: int | None = None) -> str:
    """Return the code of an error of a model, a tool or a retrieval. A status counts before the text.

    >>> code_of("model", "openai.RateLimitError: You exceeded your current quota", 429)
    'quota_exceeded'
    >>> code_of("tool", "builtins.TimeoutError: no answer"), code_of("tool", "ValueError: no order")
    ('timeout', 'api_error')
    >>> code_of("tool", "Error: 503 Service Unavailable"), code_of("tool", "UNAVAILABLE: no route")
    ('api_error', 'connection_error')
    """
    known, text = CODES[kind], text[:LONGEST_TEXT]
    if status is None and (named := _STATUS.search(text)):
        status = int(named[1] or named[2])
    busy = status in (429, 529) or "throttl" in text.lower()
    for code in _BY_TEXT_FIRST:
        if code in known and _TEXT_OF[code].search(text):
            if not busy or (code == "quota_exceeded" and not _PER_TIME.search(text)):
                return code
    by_status = (code for code, _, statuses in _PATTERNS if code in known and status in statuses)
    by_text = (
        code
        for code, pattern, _ in _PATTERNS
        if code in known
        and code not in _BY_TEXT_FIRST
        and pattern.search(text)
        # A server that answers can be reached, whatever its page says.
        and not (code == "connection_error" and status is not None)
    )
    return next(by_status, "") or next(by_text, "api_error")


def orchestration_code(exception: str) -> str:
    """Return the code of an exception that ended an agent, a workflow or the program: name and message.

    The name counts before the message.

    >>> orchestration_code("langgraph.errors.GraphRecursionError"), orchestration_code("KeyError: 'a'")
    ('max_retries_exceeded', 'uncaught_exception')
    >>> orchestration_code("RuntimeError: gave up after 3 attempts")
    'max_retries_exceeded'
    """
    name, _, message = exception[:LONGEST_TEXT].partition(":")
    of_code = name.rpartition(".")[2] in _OF_CODE  # such a message is about values of the program
    for text in (name,) if of_code else (name, message):
        for code, pattern in _ORCHESTRATION:
            if pattern.search(text):
                return code
    return "uncaught_exception"
