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
        r"billing.?(?:hard.?)?limit|billing (?:account|is|to be|must)|credit balance|"
        r"(?:out of|available|remaining) (?:credits|balance|funds)|no credits|credits exhausted|"
        r"trial key|"
        r"payment required|quota.?exceeded|exceeded.{0,40}(?:quota|budget|allowance)|"
        r"exhausted (?:\w+ ){1,3}(?:quota|credits|budget)|"
        r"(?:monthly|weekly|daily|spend(?:ing)?|usage|plan).(?:\w+ )?(?:limit|cap|quota|allowance)",
        frozenset((402,)),
    ),
    (
        "context_length_exceeded",
        r"context.?(?:length|window|size)|(?:prompt|input|request|messages?|string|query) (?:is|are|"
        r"was)? ?"
        r"too (?:long|large)|maximum (?:input |prompt )?(?:context|tokens?|length)|"
        r"too many (?:input )?tokens|token.{0,60}exceeds?|token limit of|exceeds?.{0,60}tokens|"
        r"reduce (?:the length|the number of|your prompt)|max_new_tokens\W+must be|"
        r"request_too_large|too large for model",
        frozenset((413,)),
    ),
    (
        "rate_limit",
        r"rate.?limit|throttl|too ?many ?requests|overloaded|resource.?exhausted|slow ?down|at capacity|"
        r"capacity exceeded|sent too quickly|(?:requests|tokens) per (?:second|minute|hour|day)",
        frozenset((429, 498, 529)),
    ),
    (
        "auth_error",
        r"authenticat|unauthori[sz]ed|not.?auth(?:ed|ori[sz]ed)|permission.?(?:denied|error)|forbidden|"
        r"access.?denied|log.?in (?:failed|required|first)|not logged in|lacks? (?:\w+ )?permission|"
        r"incorrect (?:api.?)?key|key (?:\w+ ){0,3}is incorrect|invalid session|"
        r"requires (?:the )?scope|sign in|(?<!\()(?:invalid|bad|missing|"
        r"expired|"
        r"wrong|no)[ _]?(?:api.?)?(?:key(?! ['\"])|credential|grant|access.?token|token\b|password|"
        r"signature|"
        r"client\b|auth\b|permission)|(?:key|token|credentials?|session|"
        r"password) (?:\w+ ){0,3}(?:expired|"
        r"invalid|revoked|rejected|missing|not valid|not accepted)|insufficient.(?:permission|privilege|"
        r"scope)|missing (?:\w+ )?scope|signature.?does.?not.?match|(?:no.?|locate )credentials|"
        r"not permitted|(?:not|n't) have (?:\w+ ){0,2}(?:permission|access|rights?)\b|"
        r"expired.?token|(?:token|jwt)\b.{0,40}\bexpired",
        frozenset((401, 403)),
    ),
    (
        "connection_error",  # such a text may name a timeout too: that of the attempts to connect
        r"(?:connection|connect) refused|econnrefused|name or service|getaddrinfo",
        frozenset(),
    ),
    (
        "timeout",
        r"time[-_ ]?out|timed[-_ ]?out|deadline.?(?:exceeded|expired)|time limit|killed after \d|"
        r"(?:took|takes|taking) (?:\w+ )?(?:too long|(?:longer|more) than)|not responding|(?:did not|"
        r"didn't) (?:reply|answer|respond) in time|exceed\w* (?:\w+ )?(?:run.?time|time)|"
        r"more than the limit of \d|no (?:answer|response|reply) for \d|"
        r"exceed\w* (?:\w+ ){0,3}\d+[- ]?(?:ms|s|sec\w*|min\w*)\b|"
        r"no (?:response|answer|reply) (?:\w+ ){0,3}(?:for|within|after|in) \d|"
        r"(?:no|did not|didn't) (?:answer|respon\w+|complete|finish)\w* (?:within|after|in) ",
        frozenset((408, 504)),
    ),
    (
        "invalid_query",
        r"(?:invalid|illegal|unsupported|unknown|wrong|missing).{0,20}(?:query|filter|expression|"
        r"search|sql|"
        r"cypher|operator|column|table|field)|syntax.?error|sql syntax|malformed|"
        r"(?:query|filter)\b.{0,20}(?:invalid|malformed|empty|too (?:long|short)|unparsable|exceeds|"
        r"must|"
        r"required|can\b|cannot)|pars(?:e|ing|er).?(?:error|exception)|badrequest|bad.?query|unexpected "
        r"token|unbalanced|unterminated|\bdim(?:ension)?s?\b.{0,50}(?:error|match)|"
        r"(?:cannot|could not|failed to) parse|no such (?:column|table|field|index|function)|"
        r"parse query|not indexed|bad request|mismatched input|top_k must|"
        r"(?:column|relation|field|table|property)\b.{1,80} (?:does not exist|not found)",
        frozenset((400, 422)),
    ),
    (
        "invalid_response",
        r"(?:not|no|instead of|decode|end of|parse|invalid|malformed|broken|expected|"
        r"garbled) (?:\w+ ){0,2}"
        r"json|json.?decode|expecting value|extra data:|unterminated string|invalid control char|"
        r"bad gzip|failed validation|expected an? \w+, got|unexpected (?:shape|structure)|"
        r"missing (?:key|from (?:the )?(?:reply|response))|(?:invalid|unexpected|malformed|garbled|"
        r"unreadable|"
        r"corrupt\w*|"
        r"empty|unknown|wrong) (?:\w+ )?(?:response|reply|content|format|payload|body|answer|data|"
        r"mime.?type|schema|html)|invalid.?response|(?<!en)(?:\b|unicode)(?:de|en)cod(?:e|ing).?error|"
        r"unicodedecode|"
        r"unpars\w+|"
        r"(?:cannot|could not|failed to|unable to) (?:parse|decode|deserialize|unpack|decompress)|"
        r"while decompressing|header check|validation.?errors?\b|schema (?:violation|mismatch)|"
        r"(?:match(?:es)?|conform|comply|fit|validate)\w* (?:to |with |against )?(?:\w+ )?"
        r"(?:\w+ )?schema|badstatusline|illegal (?:status line|header)|"
        r"missing (?:required |expected )?field|malformed|not well-formed|mismatched tag|"
        r"no element found|unexpected (?:token|end of)|"
        r"contenttypeerror|(?:syntax|scanner|parser?|csv\.|zlib\.)error|csv\.error|badzip|badgzip|"
        r"got html",
        frozenset(),
    ),
    (
        "connection_error",
        r"connect(?:ion|or(?!\.errors))?.?(?:\w+ )?(?:error|refused|reset|aborted|closed|lost|failed|"
        r"broken)|"
        r"lost connection|disconnectederror|\bssl:|hosts? (?:is|are) down|actively refused|"
        r"reset the connection|a socket|connection to .{1,60} failed|fail(?:ed|ing|s)? (?:to )?connect|"
        r"dns\b|\boffline\b|certificate.?verif|"
        r"handshake|"
        r"(?:cannot|can't|could not|couldn't|unable to|failed to) (?:establish|connect|reach|resolve)|"
        r"remote.?(?:end closed|disconnected|protocol)|incompleteread|server disconnected|"
        r"socket hang up|peer closed|nobrokers|server.?(?:is )?(?:un(?:available|reachable)|down)\b|"
        r"readerror|writeerror|broken.?pipe|getaddrinfo|gaierror|name or service|name.{0,5}resol|"
        r"nodename nor|no route to host|unreachable|socket\.|ssl.?(?:\w+)?error|"
        r"max retries exceeded with url|err_(?:conn|name|internet|network)|"
        r"\be(?:conn\w+|notfound|ai_again|hostunreach|netunreach|pipe)\b|statuscode\.unavailable|"
        r"^\W*(?:error: )?unavailable\b",
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
            r"graph.?recursion|recursion.?limit|max(?:imum)?.?(?:number.of.)?(?:turn|iteration|retr|"
            r"step|"
            r"attempt|round)|too.?many.?(?:turn|iteration|retr|step|attempt|round)|retryerror|"
            r"(?:turn|iteration|retry|step|attempt|round|request|tool_calls)s?.?(?:limit|budget|cap\b)|"
            r"(?:retry|attempt|step|turn|iteration) count|out of (?:retries|attempts|steps|turns)|"
            r"loop.?limit|\d+ of \d+ (?:attempts|tries|steps|turns)|g[ai]v(?:e|ing)? up|(?:retries|"
            r"attempts|tries) (?:have )?failed|"
            r"(?:retried|looped|ran|tried|called|asked|failed) (?:\w+ )?\d+ times|"
            r"(?:no|without) (?:\w+ ){1,4}(?:after|in) \d+ \w+|"
            r"(?:after|in) \d+ (?:attempts|retries|tries|turns|steps|rounds|iterations)|"
            r"(?:exceed\w*|exhausted|used up|ran out of) (?:\w+ ){0,3}(?:turn|iteration|retr(?:y|ies)|"
            r"step|"
            r"attempt|tries|round)|"
            r"(?:turn|iteration|retr|step|attempt|tries)\w* (?:were |was |are |is )?(?:exhausted|"
            r"exceeded|"
            r"used up)",
        ),
        (
            "constraint_violation",
            r"guard.?rail|tripwire|constraint|polic(?:y|ies)|moderation|controlrejected|violat|"
            r"compliance|"
            r"(?:budget|cost|spend\w{0,9}|usage |token\w{0,9}|limit|quota|cap)\b.{0,40}(?:exceeded|"
            r"limit|"
            r"exhausted|reached)|exceed\w{0,20}.{0,30}(?:budget|allowance|limit of|maximum|cap\b)|"
            r"budget.?(?:exceeded|exhausted)|(?:^|\.)limit(?:s|ed)?.?(?:exceeded|reached)|"
            r"above the (?:maximum|limit|cap)|(?:allow|deny|block|white|black).?list|must not|"
            r"may not \w+ more|"
            r"not (?:allowed|permitted)(?! in (?:the )?(?:state|phase))|disallowed|prohibited|"
            r"(?:safety|policy) check|\bpii\b|invariant|sandbox|approval missing|not on (?:the )?allow|"
            r"forbidden|blocked|"
            r"approval.{0,20}(?:denied|required|rejected)|(?:requires?|needs?|"
            r"without) (?:\w+ )?approval|"
            r"(?:rejected|denied) by|unsafe",
        ),
        (
            "invalid_state",
            r"(?:invalid|illegal|unexpected|inconsistent|unknown|bad|wrong|no)\b.{0,12}(?:state|update|"
            r"transition|graph|phase|status)|(?:invalid|illegal|unexpected|inconsistent|bad|wrong)\w*"
            r"(?:state|update|transition|phase)|state.?(?:error|machine|transition|mismatch)|"
            r"machine.?error|"
            r"transition(?:error|not)|\bin (?:the )?state\b|missing state|out of order|not (?:running|"
            r"compiled|started|initiali[sz]ed)\b|must be (?:initiali[sz]ed|started|compiled)|"
            r"state (?:must|should|is corrupt|was corrupt)|"
            r"expected (?:state|status|phase)|error for \w*state\b|"
            r"(?:cannot|can't|may not|not allowed to) (?:transition|go|move|change|trigger) |"
            r"(?:cannot|can't) (?:\w+ ){1,4}(?:finished|completed|closed|cancelled|ended|stopped) |"
            r"already (?:finished|done|closed|cancelled|running|\w+ed)\b|not in (?:the |a )?(?:state|"
            r"progress)|"
            r"(?:session|workflow|task|run|agent) (?:is|was) (?:closed|finished|completed|cancelled)",
        ),
    )
)
_OF_CODE: Final = frozenset(
    "ArithmeticError AttributeError FileExistsError FileNotFoundError ImportError IndexError "
    "IsADirectoryError JSONDecodeError KeyError LookupError MemoryError ModuleNotFoundError NameError "
    "NotADirectoryError NotImplementedError OverflowError RecursionError SyntaxError TypeError "
    "UnboundLocalError UnicodeDecodeError UnicodeEncodeError ZeroDivisionError".split()
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
