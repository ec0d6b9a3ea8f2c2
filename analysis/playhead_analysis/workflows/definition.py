"""A workflow file: which actions and states a run must have, in which order, and within which bounds.

The file is TOML, for review in a repository. It may come from anywhere, so everything in it is checked,
and sizes are bounded. A message names the line.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from playhead_analysis.paths import PathStep
from playhead_core.errors import ConfigurationError, nearest

MOST_BYTES: Final = 256 << 10
MOST_ENTRIES: Final = 200
"""Actions, states, transitions or rules of a workflow."""
LONGEST_TEXT: Final = 200
MOST_WILDCARDS: Final = 4
WORKFLOW: Final = "workflow.toml"
"""Name of the file in the folder of an experience."""
SHIPPED: Final = Path(__file__).parent / "shipped"
"""Folder of the workflows that are part of the package."""

RuleKind: TypeAlias = Literal["precedence", "absence", "response"]
BOUNDS: Final = ("duration_s", "cost_usd", "model_calls", "steps", "tokens", "failures", "repeats")


@dataclass(frozen=True)
class WorkflowAction:
    """A kind of step."""

    name: str
    match: tuple[str, ...]
    """Patterns of labels (``search_*``) and of kinds (``kind:model``); one of them must match."""
    minimum: int = 0
    maximum: int | None = None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(translate, self.match)))

    def fits(self, step: PathStep) -> bool:
        """Return whether a step is one of this kind."""
        return bool(self._pattern.match(step.label) or self._pattern.match(f"kind:{step.kind}"))


@dataclass(frozen=True)
class WorkflowState:
    """A state of a run: a phase, a node of a framework, an agent, or one that the program reports."""

    name: str
    required: bool = True
    minimum_s: float = 0.0
    """Least time in it; of an agent, of its steps together."""


@dataclass(frozen=True)
class WorkflowTransition:
    """An action that may directly follow another; if there are any, all others are not expected."""

    source: str
    target: str
    required: bool = False


@dataclass(frozen=True)
class WorkflowRule:
    """A rule about the order of actions, also with other steps between them."""

    kind: RuleKind
    """`precedence`: ``then`` only after ``first``; `response`: after ``first``, ``then`` at some time;
    `absence`: never ``first``."""
    first: str
    then: str = ""


@dataclass(frozen=True)
class Success:
    """When a run of the workflow succeeded."""

    status: tuple[str, ...] = ()
    """One of these; empty: any."""
    last: tuple[str, ...] = ()
    """The last action that is not ignored is one of these; empty: any."""


@dataclass(frozen=True)
class Workflow:
    """What runs of a kind must do."""

    name: str
    description: str = ""
    category: str = ""
    agents: tuple[str, ...] = ()
    """Names of agents that it is for; empty: all."""
    ignore: WorkflowAction = field(default_factory=lambda: WorkflowAction("ignored", ("",)))
    """Steps that do not count, such as model calls between the actions."""
    allow_other: bool = False
    """Whether steps that match no action are expected."""
    states: tuple[WorkflowState, ...] = ()
    actions: tuple[WorkflowAction, ...] = ()
    transitions: tuple[WorkflowTransition, ...] = ()
    start: tuple[str, ...] = ()
    """Actions with which a run may begin; empty: any. For workflows with transitions."""
    end: tuple[str, ...] = ()
    rules: tuple[WorkflowRule, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Largest values, by name: `BOUNDS`."""
    success: Success = Success()


def read_workflow(source: str | Path) -> Workflow:
    """Return the workflow of a file, an experience, or a shipped one's name. `ConfigurationError`."""
    path = Path(source)
    if path.is_dir():  # an experience
        path = path / WORKFLOW
    if not path.is_file() and str(source) in shipped_names():
        path = SHIPPED / f"{source}.toml"
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise ConfigurationError(
            f"cannot read the workflow {source}: {problem.strerror or problem}",
            hint=f"a TOML file, or one of {', '.join(shipped_names())}",
        ) from None
    return workflow_of(data, str(source))


def shipped_names() -> list[str]:
    """Return the names of the shipped workflows."""
    return sorted(one.stem for one in SHIPPED.glob("*.toml"))


def workflow_of(data: bytes, name: str = "the workflow") -> Workflow:
    """Return the workflow in the bytes of a file. `ConfigurationError`."""
    if len(data) > MOST_BYTES:
        raise ConfigurationError(f"{name} is larger than {MOST_BYTES >> 10} KiB")
    try:
        text = data.decode()
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ConfigurationError(f"{name} is not a TOML file", cause=str(problem)[:200]) from None
    return _Reader(text, name).workflow(document)


class _Reader:
    """Checks a parsed file. Knows the line of a table for messages."""

    def __init__(self, text: str, name: str) -> None:
        self._lines = text.splitlines()
        self._name = name

    def workflow(self, document: Mapping[str, Any]) -> Workflow:
        top = ("name", "description", "category", "agents", "ignore", "allow_other", "start", "end")
        tables = ("state", "action", "transition", "rule")
        self._known(document, (*top, *tables, "bounds", "success"), "")
        actions = tuple(self._action(one, where) for one, where in self._tables(document, "action"))
        names = {action.name for action in actions}
        if len(names) < len(actions):
            raise self._wrong("two actions have the same name", "action")
        ignore = self._texts(document, "ignore", "")
        transitions = [self._transition(*one, names) for one in self._tables(document, "transition")]
        return Workflow(
            name=self._text(document, "name", "", needed=True),
            description=self._text(document, "description", ""),
            category=self._text(document, "category", ""),
            agents=self._texts(document, "agents", ""),
            ignore=WorkflowAction("ignored", self._patterns(ignore, "ignore", "") or ("",)),
            allow_other=self._flag(document, "allow_other", "", False),
            states=tuple(self._state(*one) for one in self._tables(document, "state")),
            actions=actions,
            transitions=tuple(transitions),
            start=self._names(document, "start", "", names),
            end=self._names(document, "end", "", names),
            rules=tuple(self._rule(*one, names) for one in self._tables(document, "rule")),
            bounds=self._bounds(self._table(document, "bounds")),
            success=self._success(self._table(document, "success"), names),
        )

    def _action(self, entry: Mapping[str, Any], where: str) -> WorkflowAction:
        self._known(entry, ("name", "match", "minimum", "maximum"), where)
        name = self._text(entry, "name", where, needed=True)
        match = self._patterns(self._texts(entry, "match", where) or (name,), "match", where)
        least = int(self._number(entry, "minimum", where, whole=True) or 0)
        most = self._number(entry, "maximum", where, whole=True)
        if most is not None and most < least:
            raise self._wrong(f"maximum of {name!r} is below its minimum", where, "maximum")
        return WorkflowAction(name, match, least, None if most is None else int(most))

    def _state(self, entry: Mapping[str, Any], where: str) -> WorkflowState:
        self._known(entry, ("name", "required", "minimum_s"), where)
        return WorkflowState(
            self._text(entry, "name", where, needed=True),
            self._flag(entry, "required", where, True),
            self._number(entry, "minimum_s", where) or 0.0,
        )

    def _transition(self, entry: Mapping[str, Any], where: str, names: set[str]) -> WorkflowTransition:
        self._known(entry, ("from", "to", "required"), where)
        source, target = (self._name_in(entry, word, where, names) for word in ("from", "to"))
        return WorkflowTransition(source, target, self._flag(entry, "required", where, False))

    def _rule(self, entry: Mapping[str, Any], where: str, names: set[str]) -> WorkflowRule:
        self._known(entry, ("kind", "first", "then"), where)
        kind = self._text(entry, "kind", where, needed=True)
        if kind not in ("precedence", "absence", "response"):
            raise self._wrong(f"{kind[:60]!r} is not a kind of rule", where, "kind")
        first = self._name_in(entry, "first", where, names)
        if kind == "absence":
            return WorkflowRule(kind, first)
        return WorkflowRule(kind, first, self._name_in(entry, "then", where, names))

    def _bounds(self, entry: Mapping[str, Any]) -> dict[str, float]:
        self._known(entry, BOUNDS, "bounds")
        found = ((word, self._number(entry, word, "bounds")) for word in BOUNDS)
        return {word: value for word, value in found if value is not None}

    def _success(self, entry: Mapping[str, Any], names: set[str]) -> Success:
        self._known(entry, ("status", "last"), "success")
        statuses = self._texts(entry, "status", "success")
        for status in statuses:
            if status not in ("success", "partial", "failure", "interrupted"):
                raise self._wrong(f"{status[:60]!r} is not a status", "success", "status")
        return Success(statuses, self._names(entry, "last", "success", names))

    def _tables(self, document: Mapping[str, Any], word: str) -> list[tuple[Mapping[str, Any], str]]:
        value = document.get(word, [])
        entries = cast("list[Any]", value) if isinstance(value, list) else None
        if entries is None or not all(isinstance(one, dict) for one in entries):
            raise self._wrong(f"{word} is not a list of tables: write [[{word}]]", "", word)
        if len(entries) > MOST_ENTRIES:
            raise self._wrong(f"more than {MOST_ENTRIES} tables [[{word}]]", word)
        return [(one, f"{word} {number}") for number, one in enumerate(entries, 1)]

    def _table(self, document: Mapping[str, Any], word: str) -> Mapping[str, Any]:
        value = document.get(word, {})
        if not isinstance(value, dict):
            raise self._wrong(f"{word} is not a table: write [{word}]", "", word)
        return cast("dict[str, Any]", value)

    def _known(self, entry: Mapping[str, Any], words: tuple[str, ...], where: str) -> None:
        for word in entry:
            if word not in words:
                near = nearest(word, words)
                hint = f"did you mean {near}?" if near else f"known: {', '.join(words)}"
                raise self._wrong(f"unknown word {word[:60]!r}", where, word, hint)

    def _value(
        self, entry: Mapping[str, Any], word: str, where: str, fits: Callable[[Any], bool], what: str
    ) -> Any:
        value = entry.get(word)
        if value is not None and not fits(value):
            raise self._wrong(f"{word} is not {what}", where, word)
        return value

    def _text(self, entry: Mapping[str, Any], word: str, where: str, *, needed: bool = False) -> str:
        what = f"a text of 1 to {LONGEST_TEXT} characters"
        value = self._value(entry, word, where, _is_text, what)
        if needed and value is None:
            raise self._wrong(f"{word} is missing", where)
        return str(value or "")

    def _texts(self, entry: Mapping[str, Any], word: str, where: str) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            items = cast("list[Any]", value) if isinstance(value, list) else []
            return isinstance(value, list) and len(items) <= MOST_ENTRIES and all(map(_is_text, items))

        return tuple(self._value(entry, word, where, fits, "a list of texts") or ())

    def _flag(self, entry: Mapping[str, Any], word: str, where: str, default: bool) -> bool:
        value = self._value(entry, word, where, lambda one: isinstance(one, bool), "true or false")
        return default if value is None else value

    def _number(
        self, entry: Mapping[str, Any], word: str, where: str, *, whole: bool = False
    ) -> float | None:
        def fits(value: Any) -> bool:
            kind = int if whole else int | float
            return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < math.inf

        return self._value(entry, word, where, fits, f"a {'whole ' if whole else ''}number from 0")

    def _patterns(self, patterns: tuple[str, ...], word: str, where: str) -> tuple[str, ...]:
        if any(one.count("*") > MOST_WILDCARDS for one in patterns):
            raise self._wrong(f"a pattern has more than {MOST_WILDCARDS} wildcards", where, word)
        return patterns

    def _name_in(self, entry: Mapping[str, Any], word: str, where: str, names: set[str]) -> str:
        return self._action_name(self._text(entry, word, where, needed=True), word, where, names)

    def _names(
        self, entry: Mapping[str, Any], word: str, where: str, names: set[str]
    ) -> tuple[str, ...]:
        found = self._texts(entry, word, where)
        return tuple(self._action_name(name, word, where, names) for name in found)

    def _action_name(self, name: str, word: str, where: str, names: set[str]) -> str:
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {near}?" if near else "add it: [[action]]"
            raise self._wrong(f"{word} names no action: {name[:60]!r}", where, word, hint)
        return name

    def _wrong(self, what: str, where: str, word: str = "", hint: str = "") -> ConfigurationError:
        line = self._line(where, word)
        place = f"{self._name}, line {line}" if line else self._name
        return ConfigurationError(f"{place}: {what}", hint=hint)

    def _line(self, where: str, word: str) -> int:
        """Return the line of a key, else of its table; 0 if it cannot be found."""
        table, _, number = where.partition(" ")
        begin = 0
        if table:
            head = re.compile(rf"\s*\[\[?\s*{re.escape(table)}\s*\]")
            heads = [at for at, line in enumerate(self._lines, 1) if head.match(line)]
            begin = next(iter(heads[int(number or 1) - 1 :]), 0)
        key = re.compile(rf"\s*[\"']?{re.escape(word)}[\"']?\s*=")
        for at, line in enumerate(self._lines[begin:], begin + 1):
            if word and key.match(line):
                return at
            if line.lstrip().startswith("["):
                break
        return begin


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and value.isprintable()
