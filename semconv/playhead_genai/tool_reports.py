"""Spans that report a tool call which another span reports, too: only one of them is the step.

A framework's hook, another instrumentation, a client of MCP, its server and a marked function may each
have a span for one call of a tool. Some of them enclose each other; where an instrumentation does not
make its span the current one, the spans overlap in time, in one process. Two spans with the same source
are two calls, also of a tool that calls itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

from playhead_semconv import attributes as a

Id = TypeVar("Id", str, bytes)

OURS: Final = (a.PLAYHEAD_FRAMEWORK_NAME, a.PLAYHEAD_EXCHANGE_ID)
"""Attributes of our spans: of a framework's hook, of a marked function."""

_OURS: Final = frozenset(OURS)
_SOURCES: Final = (
    *OURS,
    a.MCP_METHOD_NAME,
    "openinference.span.kind",
    "traceloop.span.kind",
    "langfuse.observation.type",
)
"""Attributes that name the source of a span. A span has several sources if it was taken over."""

OTHER_SOURCE: Final = "other"
"""Source of a span that has none of these."""

MOST_BESIDE: Final = 100
"""Latest of the calls of one tool that go on; a span is compared with these."""


def sources_in(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sources of a tool's span with these attributes."""
    return tuple(name for name in _SOURCES if name in attributes) or (OTHER_SOURCE,)


class ToolTime(NamedTuple, Generic[Id]):
    """When a span says that a tool ran."""

    id: Id
    name: str
    start_ns: int
    end_ns: int | None
    """None: it goes on."""
    sources: tuple[str, ...]
    """Empty if they are not known: then no other span reports the same call."""
    process: Hashable = None
    """What spans of the same process share; None if that is not known."""


@dataclass(slots=True)
class _Call(Generic[Id]):
    """A call of a tool, and the spans that report it."""

    first: ToolTime[Id]
    sources: tuple[str, ...]
    step: Id
    is_ours: bool

    def takes(self, tool: ToolTime[Id]) -> bool:
        return bool(self.sources and tool.sources) and set(self.sources).isdisjoint(tool.sources)

    def is_over(self, tool: ToolTime[Id]) -> bool:
        return self.first.end_ns is not None and self.first.end_ns < tool.start_ns


class ToolReports(Generic[Id]):
    """The calls of tools in a run. Spans are added in order of their start."""

    def __init__(self) -> None:
        self._calls: dict[Id, _Call[Id]] = {}
        self._open: dict[str, list[_Call[Id]]] = {}
        """Calls that go on, by tool."""

    def add(self, tool: ToolTime[Id], above: Iterable[Id]) -> None:
        """Add a span. ``above``: ids of the spans around it, from the innermost."""
        name = _plain(tool.name)
        is_ours = not _OURS.isdisjoint(tool.sources)
        call = self._around(tool, name, above) or self._beside(tool, name, is_ours)
        if call is None:
            call = _Call(tool, tool.sources, tool.id, is_ours)
            self._open.setdefault(name, []).append(call)
        else:
            call.sources += tool.sources
            if is_ours and not call.is_ours:
                call.step, call.is_ours = tool.id, True
        self._calls[tool.id] = call

    def told_by(self, id: Id) -> Id | None:
        """The span that is the step of the call which this span reports; None if it is that step."""
        call = self._calls.get(id)
        return None if call is None or call.step == id else call.step

    def _around(self, tool: ToolTime[Id], name: str, above: Iterable[Id]) -> _Call[Id] | None:
        call = next((call for id in above if (call := self._calls.get(id)) is not None), None)
        is_same = call is not None and _plain(call.first.name) == name and call.takes(tool)
        return call if is_same else None

    def _beside(self, tool: ToolTime[Id], name: str, is_ours: bool) -> _Call[Id] | None:
        """The first of the calls that go on, so that each of several parallel ones is reported once.

        Spans of ours are inside of each other where they report one call.
        """
        if tool.process is None or name not in self._open:
            return None
        during = self._open[name] = [one for one in self._open[name] if not one.is_over(tool)][
            -MOST_BESIDE:
        ]
        return next(
            (
                call
                for call in during
                if call.first.process == tool.process
                and not (is_ours and call.is_ours)
                and call.takes(tool)
            ),
            None,
        )


def _plain(name: str) -> str:
    """Return the name of a tool without its server: agents write ``mcp__SERVER__TOOL``.

    >>> _plain("mcp__shop__charge"), _plain("charge")
    ('charge', 'charge')
    """
    return name.split("__", 2)[-1] if name.startswith("mcp__") else name
