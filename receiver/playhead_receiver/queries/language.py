"""The query language for runs, the same in every command, in the HTTP API and for agents.

``agent:refund status:failure tool:search since:2d cost>=0.5 "order 81"``: all parts must match. A part
without a field is text that must occur in the run. A value with spaces is quoted. A name with a dot is
an attribute of a span or resource: ``customer.tier:gold``, ``.plan:pro``, ``gen_ai.request.seed>=5``;
``score.NAME`` is the result of an evaluation: ``score.relevance>=0.5``. ``level:error`` and
``level>=warning`` find runs by the level of a log record. ``goal:``, ``phase:``, ``decision:`` and
``signal:`` find what programs report; ``root:RUN`` finds a run and all that it triggered.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from playhead_core.errors import UsageError, nearest
from playhead_core.otlp.log_records import LEVELS, LogLine, level_name
from playhead_genai.readable_text import text_of
from playhead_receiver.storage.api.retention import MARKS
from playhead_receiver.storage.runs.attribute_conditions import levels_of, number_in
from playhead_receiver.storage.runs.attribute_keys import LEVEL
from playhead_receiver.storage.values.run_summaries import REASONS, AttributeCondition, Query
from playhead_replay.transitions import ENDED
from playhead_replay.transitions import STATUSES as SESSIONS

WORDS = {
    "agent": "agent",
    "version": "version",
    "env": "environment",
    "environment": "environment",
    "conversation": "conversation",
    "session": "conversation",
    "model": "model",
    "provider": "provider",
    "tool": "tool",
    "error": "error_type",
}
"""Fields that are compared for equality, by their names in the language."""

LISTED = (
    *("user", "tag", "prompt", "prompt_version", "release", "failure"),
    *("agent_type", "goal", "phase", "decision", "signal"),
)
"""Fields with several values in a run; each may be given several times, and all values must occur."""

STATUSES = ("running", "success", "failure", "partial", "interrupted")
"""Of a run; those of its session (`playhead_replay.transitions`) are names for them, or finer ones."""
MODES = ("record", "fork", "resume", "replay", "service", "all")

_NAME = r"[a-z]+(?:_[a-z]+)*|\.?[A-Za-z_][\w-]*(?:\.[\w-]+)+|\.[A-Za-z_][\w-]*"
_PART = re.compile(rf'({_NAME})(:|>=|<=|>|<)("[^"]*"|\S*)|("[^"]*"\*?|\S+)')
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)\Z")
_UNITS_NS = {
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}
_MOST = (1 << 63) - 1


class ParsedQuery(msgspec.Struct, frozen=True):
    """A parsed query."""

    query: Query
    text: str = ""
    """Words and phrases that must occur; empty if there are none."""


def read_language(text: str, base: Query | None = None, now_ns: int | None = None) -> ParsedQuery:
    """Parse a query; ``base`` provides what the text does not set. `UsageError`.

    >>> parsed = read_language('agent:refund tool:search errors:yes "order 81"')
    >>> parsed.query.agent, parsed.query.tool, parsed.query.has_errors, parsed.text
    ('refund', 'search', True, '"order 81"')
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    fields: dict[str, Any] = {}
    words: list[str] = []
    named: list[tuple[str, str]] = []
    attributes: list[AttributeCondition] = []
    for part in _PART.finditer(text):
        name, sign, value, word = part.groups()
        if word is not None:
            words.append(word)
            continue
        value = value.strip('"')
        if not value:
            hint = f'a word in quotes is text: "{name}{sign}"'
            raise UsageError(f"{name}{sign} has no value", hint=hint)
        if "." in name:
            attributes.append(_attribute(name, sign, value))
        elif name == "level":
            attributes.append(_level(sign, value))
        elif name in LISTED and sign == ":":
            named.append((name, value))
        else:
            _read_field(fields, name, sign, value, now_ns)
    query = msgspec.structs.replace(
        Query() if base is None else base, words=tuple(named), attributes=tuple(attributes), **fields
    )
    return ParsedQuery(query, " ".join(words))


def read_list(text: str, base: Query) -> ParsedQuery:
    """As `read_language`, for a list: without any condition, it leaves out idle runs. `UsageError`.

    >>> [read_list(text, Query()).query.without_idle for text in ("", "agent:refund", "mode:all")]
    [True, False, False]
    """
    parsed = read_language(text, base)
    same_order = Query(limit=base.limit, sort=base.sort, ascending=base.ascending, after=base.after)
    if parsed.text or parsed.query != same_order:
        return parsed
    return ParsedQuery(msgspec.structs.replace(parsed.query, without_idle=True))


class LogFilter(msgspec.Struct, frozen=True):
    """Which log records of a run are wanted."""

    levels: frozenset[str] | None = None
    """Names of levels; None: all, unknown ones too."""
    words: tuple[str, ...] = ()
    """Texts that must all occur, whatever their case."""

    def selects(self, line: LogLine) -> bool:
        """Whether a record is wanted."""
        if self.levels is not None and level_name(line.level) not in self.levels:
            return False
        if not self.words:
            return True
        said = f"{line.event} {line.logger} {text_of(line.body)} {text_of(line.attributes)}".casefold()
        return all(word in said for word in self.words)


def read_log_filter(text: str) -> LogFilter:
    """Parse a query for log records: a level and words. `UsageError`.

    >>> read_log_filter('level>=error "cache miss"').words
    ('cache miss',)
    """
    parsed = read_language(text)
    conditions = parsed.query.attributes
    if parsed.query != Query(attributes=conditions) or any(one.name != LEVEL for one in conditions):
        hint = 'level>=warning "order 81"'
        raise UsageError("a query for log records has a level and words", hint=hint)
    levels: frozenset[str] | None = None
    for one in conditions:
        met = frozenset(levels_of(one))
        levels = met if levels is None else levels & met
    words = tuple(part[4].strip('"*').casefold() for part in _PART.finditer(parsed.text))
    return LogFilter(levels, words)


def has_fields(text: str) -> bool:
    """Whether the text has fields; without fields it may be the name of a run.

    >>> has_fields("agent:refund"), has_fields("refund-7:3"), has_fields("https://host/trace/1")
    (True, False, False)
    >>> has_fields("user.id:7"), has_fields("run.tape:3")
    (True, False)
    """
    named = (part[1] for part in _PART.finditer(text) if part[1])
    return any(name in FIELDS or ("." in name and not name.endswith(_FILES)) for name in named)


_FILES = (".tape", ".tape.gz")


def _read_field(fields: dict[str, Any], name: str, sign: str, value: str, now_ns: int) -> None:
    if sign == ":":
        found = _equal(name, value, now_ns)
    elif name in _BOUNDS:
        found = _BOUNDS[name](sign, value)
    else:
        raise _unknown(name, sign)
    for field, one in found.items():
        if field in fields:
            raise UsageError(f"{name}{sign} is given twice", hint="run two queries")
        fields[field] = one


def _level(sign: Any, value: str) -> AttributeCondition:
    return AttributeCondition(LEVEL, sign, _one_of("level", value, tuple(LEVELS)))


def _attribute(name: str, sign: Any, value: str) -> AttributeCondition:
    if sign != ":" and number_in(value) is None:
        raise UsageError(f"{value} is not a number", hint=f"{name}{sign}100, or {name}:{value}")
    return AttributeCondition(name.removeprefix("."), sign, value)


def _equal(name: str, value: str, now_ns: int) -> dict[str, Any]:
    if name in WORDS:
        return {WORDS[name]: value}
    if name == "status":
        value = _one_of(name, value, (*STATUSES, *SESSIONS))
        if value in STATUSES:
            return {"status": value}
        over = next((status for status, one in ENDED.items() if one == value), None)
        return {"status": over} if over else {"status": "running", "session": value}
    if name == "mode":
        return {"mode": None if _one_of(name, value, MODES) == "all" else value}
    if name == "root":
        return {"root": value, "mode": None}
    if name == "errors":
        return {"has_errors": _one_of(name, value, ("yes", "no")) == "yes"}
    if name == "loop":
        return {"loop": _one_of(name, value, ("yes", "no"))}
    if name == "stuck":
        return {"stuck": _one_of(name, value, ("yes", "no", *REASONS))}
    if name == "mark":
        return {"mark": _one_of(name, value, MARKS)}
    if name == "since":
        return {"started_from_ns": _moment(name, value, now_ns)}
    if name == "until":
        return {"started_before_ns": _moment(name, value, now_ns)}
    raise _unknown(name, ":")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UsageError(f"{name}:{value} is not valid", hint=f"{name} is one of: {', '.join(known)}")
    return value


def _duration(sign: str, value: str) -> dict[str, Any]:
    ns = duration_ns(value)
    if sign in (">", "<="):
        ns = min(ns + 1, _MOST)
    return {"duration_from_ns" if sign[0] == ">" else "duration_below_ns": ns}


def _cost(sign: str, value: str) -> dict[str, Any]:
    try:
        usd = float(value.lstrip("$"))
    except ValueError:
        usd = math.nan
    if not math.isfinite(usd):
        raise UsageError(f"{value} is not a cost", hint="cost>=0.25, in US dollars")
    if sign in (">", "<="):
        usd = math.nextafter(usd, math.inf)
    return {"cost_from_usd" if sign[0] == ">" else "cost_below_usd": usd}


def _count(name: str, sign: str, value: str) -> dict[str, Any]:
    if not value.isdecimal():
        raise UsageError(f"{value} is not a number of {name}", hint=f"{name}>=100")
    count = min(int(value[:20]) + (sign in (">", "<=")), _MOST)
    return {f"{name}_from" if sign[0] == ">" else f"{name}_below": count}


_BOUNDS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "duration": _duration,
    "cost": _cost,
    "tokens": partial(_count, "tokens"),
    "steps": partial(_count, "steps"),
}
FIELDS = (
    *WORDS,
    *LISTED,
    "root",
    "status",
    "mode",
    "errors",
    "loop",
    "stuck",
    "mark",
    "level",
    "since",
    "until",
    *_BOUNDS,
)
"""Names of all fields."""


def duration_ns(value: str) -> int:
    """``90s``, ``1.5h``, ``2d`` in ns. `UsageError`."""
    found = _SPAN.match(value)
    if found is None:
        raise UsageError(f"{value} is not a duration", hint="90s, 15m, 2h, 7d")
    return min(round(float(found[1]) * _UNITS_NS[found[2]]), _MOST)


def _moment(name: str, value: str, now_ns: int) -> int:
    """``2d`` is two days ago; else a date, optionally with a time of day, local unless it has a zone."""
    if _SPAN.match(value):
        return max(now_ns - duration_ns(value), 0)
    try:
        return min(max(round(datetime.fromisoformat(value).timestamp() * 1e9), 0), _MOST)
    except (ValueError, OverflowError, OSError):
        hint = f"{name}:2d, {name}:2026-11-21, {name}:2026-11-21T14:30"
        raise UsageError(f"{value} is not a time", hint=hint) from None


def _unknown(name: str, sign: str) -> UsageError:
    near = nearest(name, FIELDS)
    meant = f", did you mean {near}?" if near and near != name else ""
    fields = [f"{one}>= {one}<" if one in _BOUNDS else f"{one}:" for one in FIELDS]
    return UsageError(
        f"{name}{sign} is not a field of a run{meant}",
        cause=f"fields are {' '.join(fields)}",
        hint=f'put text in quotes: "{name}{sign}…"; an attribute has a dot: .{name}{sign}…',
    )
