"""Rules of alerts: a query with a condition, and where the alert goes.

``loop -> https://hooks.example/T``, ``agent:refund failure:tool/timeout -> page --team agents``. The
query is that of lists. It has at least one of the conditions ``loop``, ``stuck`` and ``failure``. A
target that is no URL is a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from playhead_core.errors import ConfigurationError, PlayheadError
from playhead_receiver.queries.language import ParsedQuery, read_language
from playhead_receiver.storage import Query, RunSummary

Kind: TypeAlias = Literal["loop", "stuck", "failure"]

ARROW: Final = "->"
_SHORT: Final = {"loop": "loop:yes", "stuck": "stuck:yes", "failure": "failure:any"}


class AlertEvent(msgspec.Struct, frozen=True):
    """Something that was found in a run and that rules may be about."""

    kind: Kind
    identity: str
    """The same for the same loop, failure or standstill of a run: it is reported once."""
    words: frozenset[str]
    """Of a failure: the words that a query may name."""
    found: Mapping[str, Any]
    """What was found, without content of the run."""
    run: RunSummary


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule."""

    text: str
    """Its query, as it was written."""
    parsed: ParsedQuery
    kinds: frozenset[Kind]
    url: str = ""
    """Of a webhook; empty: a command."""
    command: Sequence[str] = ()

    @property
    def target(self) -> str:
        """Where it goes, for messages: a URL without its path, which may be a secret."""
        return (
            f"{urlsplit(self.url).scheme}://{urlsplit(self.url).hostname}"
            if self.url
            else self.command[0]
        )

    def concerns(self, event: AlertEvent) -> bool:
        """Whether the condition of the rule is what was found; the rest of the query is not checked."""
        failures = {word for field, word in self.parsed.query.words if field == "failure"}
        return event.kind in self.kinds and (event.kind != "failure" or failures <= event.words)


def read_alerts(text: str) -> list[AlertRule]:
    """Parse rules that are separated by ``;`` or lines. `ConfigurationError`."""
    return [read_alert(one) for one in re.split(r"[;\n]", text) if one.strip()]


def read_alert(text: str) -> AlertRule:
    """Parse one rule. `ConfigurationError`.

    >>> rule = read_alert("agent:refund loop -> https://hooks.example/T")
    >>> sorted(rule.kinds), rule.target
    (['loop'], 'https://hooks.example')
    """
    query, arrow, target = (part.strip() for part in text.partition(ARROW))
    hint = "--alert 'loop -> https://HOST/PATH', --alert 'stuck agent:refund -> COMMAND'"
    words = [_SHORT.get(word, word) for word in query.split()]
    try:
        parsed = read_language(" ".join(words))
        command = [] if target.startswith(("http://", "https://")) else shlex.split(target)
    except (PlayheadError, ValueError) as problem:
        raise ConfigurationError(f"{text.strip()!r} is not an alert: {problem}", hint=hint) from None
    kinds = _kinds(parsed.query)
    if (
        not arrow
        or not target
        or not kinds
        or parsed.text
        or (not command and not urlsplit(target).hostname)
    ):
        raise ConfigurationError(f"{text.strip()!r} is not an alert", hint=hint)
    return AlertRule(query, parsed, kinds, "" if command else target, tuple(command))


def _kinds(query: Query) -> frozenset[Kind]:
    found: set[Kind] = set()
    if query.loop == "yes":
        found.add("loop")
    if query.stuck not in (None, "no"):
        found.add("stuck")
    if any(field == "failure" for field, _ in query.words):
        found.add("failure")
    return frozenset(found)
