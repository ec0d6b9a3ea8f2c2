"""Rules that pause or stop an agent automatically: ``pause tool=send_email``, ``stop cost>1``.

A rule is an action and a condition. ``pause`` waits for a person, ``stop`` rejects the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from playhead_core.errors import UsageError, nearest

Action: TypeAlias = Literal["pause", "stop"]

NAMED = ("tool", "model")
"""Conditions with a name: the request calls this tool or this model. ``*`` stands for any."""
COUNTED = ("tokens", "cost", "steps", "seconds")
"""Conditions with a limit: sums over the process since the rule was set. Cost is in USD."""
PLAIN = ("error", "loop", "lost")
"""Conditions without a value: an exchange failed before; three equal rounds of requests follow
each other (see `loops`); the receiver is lost while a request is pending."""

MOST_RULES = 100
LONGEST_RULE = 300

_NAMED = re.compile(rf"({'|'.join(NAMED)})=(\S.*)")
_COUNTED = re.compile(rf"({'|'.join(COUNTED)})>([0-9]+(?:\.[0-9]+)?)")


class ControlRule(msgspec.Struct, frozen=True):
    """One rule."""

    action: Action
    what: str
    """One of `NAMED`, `COUNTED` or `PLAIN`."""
    name: str = ""
    """Of a named condition."""
    limit: float = 0.0
    """Of a counted condition: it applies above that."""

    @property
    def condition(self) -> str:
        """``tool=send_email``, ``cost>1``, ``error``."""
        if self.what in NAMED:
            return f"{self.what}={self.name}"
        return f"{self.what}>{self.limit:g}" if self.what in COUNTED else self.what

    def __str__(self) -> str:
        return f"{self.action} {self.condition}"


def read_rule(text: str) -> ControlRule:
    """Parse a rule; without an action it pauses. Raises `UsageError`.

    >>> str(read_rule("cost>0.5"))
    'pause cost>0.5'
    """
    words = text.strip()
    action: Action = "pause"
    if words.partition(" ")[0] in ("pause", "stop"):
        action = "stop" if words.startswith("stop") else "pause"
        words = words.partition(" ")[2].strip()
    if len(text) <= LONGEST_RULE:
        if words in PLAIN:
            return ControlRule(action, words)
        if found := _NAMED.fullmatch(words):
            return ControlRule(action, found[1], name=found[2])
        if found := _COUNTED.fullmatch(words):
            return ControlRule(action, found[1], limit=float(found[2]))
    near = nearest(re.split("[=>]", words)[0], (*NAMED, *COUNTED, *PLAIN))
    raise UsageError(
        f"{text[:LONGEST_RULE]!r} is not a rule",
        hint=(f"did you mean {near}? " if near else "")
        + "tool=NAME, model=NAME, tokens>N, cost>USD, steps>N, seconds>N, error, loop or lost;"
        " before it pause or stop",
    )


def read_rules(texts: Iterable[str]) -> list[ControlRule]:
    """Parse several rules. Raises `UsageError`."""
    rules = [read_rule(text) for text in texts]
    if len(rules) > MOST_RULES:
        raise UsageError(f"{len(rules)} rules are more than {MOST_RULES}")
    return rules


def rules_of_setting(value: str) -> list[ControlRule] | None:
    """The rules of the setting ``control``; None if it is off. `UsageError`."""
    words = [word.strip() for word in value.split(";") if word.strip()]
    if not words or words[0].lower() in ("off", "no", "false", "0"):
        return None
    if words[0].lower() in ("on", "yes", "true", "1"):
        words = words[1:]
    return read_rules(words)
