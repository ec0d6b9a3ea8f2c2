"""The names of headers, query keys, options and variables of credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from playhead_core.credentials.fields import is_field
from playhead_core.lazy_patterns import lazy

Where = Literal["header", "query", "option", "variable"]


class Rule(msgspec.Struct, frozen=True):
    """A value in ``where`` whose name matches ``pattern``, but not ``but``, is a credential."""

    where: Where
    pattern: str
    but: str = r"(?!)"


_WORDS = (
    r"(?:^|[-_.])(?:token|secret|key|apikey|passw(?:or)?d|passphrase|credentials?|auth|signature)"
    r"(?:$|[-_.])"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "header",
        r"authorization|cookie|^(?:x-?)?(?:api-?)?(?:key|token)$|" + _WORDS,
        r"idempotency|sec-websocket|(?:cache|routing|partition|surrogate)-key|count|limit|usage|budget"
        r"|remaining|reset|^signature-input$|-ids?$|-name$|-type$|-len(?:gth)?$",
    ),
    Rule("query", r"^sig$|^code$|" + _WORDS, r"page|next|continu|cursor|sync|count|limit|max"),
    Rule(
        "option",
        r"^-{1,2}(?:.*[-_])?(?:token|secret|key|apikey|passw(?:or)?d|passphrase|auth|credentials?)$",
        r"(?:file|path|max|count|limit)",
    ),
    Rule(
        "variable",
        r"(?:^|_)(?:TOKEN|SECRET|KEY|APIKEY|PASSPHRASE|PASS|CREDENTIALS?|PAT|COOKIE|PWD|AUTH)(?:$|_)"
        r"|PASSW(?:OR)?D|SSHPASS|APIKEY$|TOKEN$|SECRET$",
        r"^(?:OLD)?PWD$|_SOCK$|_FILE$|_PATH$|_DIR$|COUNT|LIMIT|MAX|TOKENIZERS|^SSH_AUTH|^XAUTH|_(?:ID|NAME|URL)$",
    ),
)
"""The rules of every process."""


class SecretNames:
    """All rules combined."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        by_place: dict[str, list[Rule]] = {}
        for rule in rules:
            by_place.setdefault(rule.where, []).append(rule)
        self._patterns = {where: _either(found) for where, found in by_place.items()}

    def secret(self, where: Where, name: str) -> bool:
        """Whether the value under ``name`` in ``where`` is a credential."""
        pattern, but = self._patterns.get(where, _NOTHING)
        return (pattern.search(name) is not None or is_field(name)) and but.search(name) is None


_NOTHING = lazy(r"(?!)"), lazy(r"(?!)")


def _either(rules: list[Rule]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    pattern, but = (
        "|".join(f"(?:{part})" for part in parts)
        for parts in zip(*((rule.pattern, rule.but) for rule in rules), strict=True)
    )
    return lazy(pattern), lazy(but)
