"""The tokenizer of TraceQL."""

from __future__ import annotations

import re

import msgspec

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.times import PART

MOST_CHARS = 10_000

STATUSES = {"unset": 0, "ok": 1, "error": 2}
KINDS = {"unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
INTRINSICS = frozenset(
    (
        "name",
        "kind",
        "status",
        "statusMessage",
        "duration",
        "traceDuration",
        "rootName",
        "rootServiceName",
        "nestedSetParent",
        "nestedSetLeft",
        "nestedSetRight",
        "childCount",
        "parent",
    )
)
SCOPED = {
    "span:id": "spanID",
    "span:parentID": "parentID",
    "span:name": "name",
    "span:kind": "kind",
    "span:status": "status",
    "span:statusMessage": "statusMessage",
    "span:duration": "duration",
    "span:childCount": "childCount",
    "trace:id": "traceID",
    "trace:duration": "traceDuration",
    "trace:rootName": "rootName",
    "trace:rootService": "rootServiceName",
    "event:name": "eventName",
    "event:timeSinceStart": "eventTimeSinceStart",
    "link:spanID": "linkSpanID",
    "link:traceID": "linkTraceID",
    "instrumentation:name": "instrumentationName",
    "instrumentation:version": "instrumentationVersion",
}
SCOPES = ("span", "resource", "event", "link", "instrumentation")
AGGREGATES = frozenset(("count", "avg", "min", "max", "sum"))
METRICS = frozenset(
    (
        "rate",
        "count_over_time",
        "min_over_time",
        "max_over_time",
        "avg_over_time",
        "sum_over_time",
        "histogram_over_time",
        "quantile_over_time",
        "compare",
    )
)
THRESHOLDS = ("=", "!=", ">", ">=", "<", "<=")
COMPARISONS = (*THRESHOLDS, "=~", "!~")
STRUCTURAL = frozenset(
    (">", ">>", "<", "<<", "~", "!>", "!>>", "!<", "!<<", "!~", "&>", "&>>", "&<", "&<<", "&~")
)

_KEY = r"""(?:"(?:[^"\\]|\\.)*"|[^\s{}()=~!<>&|^,"`])+"""
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*"|`[^`]*`)
    |(?P<field>(?:parent\.(?:(?:{"|".join(SCOPES)})\.)?|(?:{"|".join(SCOPES)})\.|\.(?!\d)){_KEY})
    |(?P<scoped>(?:span|trace|event|link|instrumentation):[A-Za-z]+)
    |(?P<duration>(?:{PART})+(?![\w.]))
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<op>&>>|&<<|!>>|!<<|&>|&<|&~|!>|!<|!~|!=|>=|<=|=~|&&|\|\||>>|<<|[><~=|(){{}},+\-*/%^!])
    )""",
    re.VERBOSE,
)


class Lexeme(msgspec.Struct, frozen=True):
    """A token of a query."""

    kind: str
    text: str
    at: int


def tokens(text: str) -> list[Lexeme]:
    """The tokens of a query, with an end token. `UsageError`."""
    found: list[Lexeme] = []
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup is None:
            raise UsageError(f"invalid TraceQL query: {text[at:].strip()[:20]!r} at {at} means nothing")
        found.append(Lexeme(token.lastgroup, token[token.lastgroup], token.start(token.lastgroup)))
        at = token.end()
    found.append(Lexeme("end", "", len(text)))
    return found
