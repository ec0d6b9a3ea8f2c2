"""Which spans of a run are its steps, and whose tokens count. Every reader of a run asks here.

A step is a call of a model, a tool, or a request that belongs to neither. A framework, an SDK and the
client below it may each have a span for one call: then one of these spans is the step.

==========================================================  =====================================
spans of calls that enclose each other                      the step is
==========================================================  =====================================
none was derived from bytes                                 the innermost
one was derived from bytes, by us                           that one, also around an SDK's own span
several were                                                the innermost of these
==========================================================  =====================================

Some frameworks do not make their span the current one. It stands beside ours then: of the same model,
and around it in time, and below the same span or in the same process. `playhead_genai.tool_reports` does
the same for calls of tools.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile, islice, takewhile
from typing import Any, Final, Generic, NamedTuple, TypeVar

from playhead_genai.tool_reports import ToolReports, ToolTime
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, OpenaiApiType

Id = TypeVar("Id", str, bytes)

FRAMES: Final = frozenset(
    (GenAiOperationName.INVOKE_AGENT, GenAiOperationName.INVOKE_WORKFLOW, "execute_task")
)
"""Operations that enclose steps and are not steps themselves; the last one is OpenLLMetry's."""

CALLS: Final = frozenset(
    (
        GenAiOperationName.CHAT,
        GenAiOperationName.GENERATE_CONTENT,
        GenAiOperationName.TEXT_COMPLETION,
        GenAiOperationName.EMBEDDINGS,
    )
)
"""GenAI operations that are calls of a model, whether or not they name it."""


def operation_in(attributes: Mapping[str, Any]) -> str:
    """The GenAI operation of a span; empty if it has none, or if its sender gave it no text."""
    operation = attributes.get(a.GEN_AI_OPERATION_NAME)
    return operation if isinstance(operation, str) else ""


def counted_key(operation: object, response_id: object, api: object = None) -> str:
    """Return the id of a response that may be fetched, also several times, with the usage of its call.

    Its tokens count once: for the call that made it, else for the first fetch. Each call counts, also
    where servers give several responses one id. Empty for other operations. ``api``: value of
    ``openai.api.type``.
    """
    may_be_fetched = operation == GenAiOperationName.FETCH_RESPONSE or api == OpenaiApiType.RESPONSES
    return response_id if may_be_fetched and isinstance(response_id, str) else ""


def counted_key_in(at: Mapping[str, Any]) -> str:
    """As `counted_key`, for the attributes of a span."""
    return counted_key(operation_in(at), at.get(a.GEN_AI_RESPONSE_ID), at.get(a.OPENAI_API_TYPE))


MOST_BESIDE: Final = 100
"""Calls of ours that are looked at, of those that began during a call of others."""
MOST_AROUND: Final = 200
"""Spans around one that are looked at: a sender may nest them without end, or in a ring."""


class Role(IntEnum):
    """What a span is for the count of steps."""

    OTHER = 0
    SERVED = 1
    """A request that a service received; what it does for it is not an attempt of its caller."""
    REQUEST = 2
    """An attempt over HTTP, gRPC or a WebSocket."""
    STEP = 3
    """A tool, or another operation that calls no model."""
    CALL = 4
    """A call of a model, as somebody tells it."""
    OWN_CALL = 5
    """A call of a model that we derived from its bytes."""


class CallTime(NamedTuple, Generic[Id]):
    """When a call of a model was, for spans that stand beside each other."""

    id: Id
    start_ns: int
    end_ns: int | None
    """None: it goes on."""
    models: frozenset[str]
    """Those that request and answer name."""
    process: Hashable = None
    """What spans of the same process share; None if that is not known."""

    def is_beside(self, own: CallTime[Id]) -> bool:
        """Whether it is around a call of ours in time, and of the same model."""
        if self.start_ns > own.start_ns or self.models.isdisjoint(own.models):
            return False
        return self.end_ns is None or (own.end_ns is not None and own.end_ns <= self.end_ns)


class Nesting(Generic[Id]):
    """How the spans of a run enclose each other.

    They may come in any order, but for calls of ours, which come before what they enclose.
    """

    def __init__(
        self,
        spans: Iterable[tuple[Id, Id, Role]] = (),
        calls: Callable[[], Iterable[CallTime[Id]]] = tuple,
        tools: Iterable[ToolTime[Id]] = (),
    ) -> None:
        """``spans``: id, id of the parent (empty for a root) and role.

        ``calls``, ``tools``: those among them.
        """
        self._parents: dict[Id, Id] = {}
        self._roles: dict[Id, Role] = {}
        self._around: set[Id] = set()
        """Ids of what encloses a call, also of spans that have not come."""
        self._beside: dict[Id, Id] = {}
        """Spans beside a call of ours that tell of it, and that call."""
        for id, parent, role in spans:
            self._parents[id], self._roles[id] = parent, role
        self._have_ours = Role.OWN_CALL in self._roles.values()
        if self._have_ours and Role.CALL in self._roles.values():
            self._find_beside(calls())
        for id, role in self._roles.items():
            if role >= Role.CALL and self._parents[id] and self.told_by(id) is None:
                self._mark(self._around, id)
        self._tools = ToolReports[Id]()
        for tool in sorted(tools, key=_start):
            self._tools.add(tool, self._around_tool(tool.id))

    def add(self, id: Id, parent: Id, role: Role, tool: ToolTime[Id] | None = None) -> None:
        """Add a span without searching for its siblings. ``tool``: if it is the span of a tool."""
        self._parents[id], self._roles[id] = parent, role
        if tool is not None:
            self._tools.add(tool, self._around_tool(id))
        self._have_ours = self._have_ours or role == Role.OWN_CALL
        if id in self._around or (role >= Role.CALL and self.told_by(id) is None):
            self._mark(self._around, id)

    def role(self, id: Id) -> Role:
        """What this span is."""
        return self._roles[id]

    def is_step(self, id: Id) -> bool:
        """Whether this span is a step."""
        role = self._roles[id]
        if role == Role.REQUEST:
            return not self.is_attempt(id)
        if role >= Role.CALL:
            return id not in self._around and self.told_by(id) is None
        return role == Role.STEP and self.told_by(id) is None

    def is_attempt(self, id: Id) -> bool:
        """Whether a call, a tool or another request encloses this request.

        A call of a model includes what gateways do for it. Of other spans only those of the same service
        count: what a service asks while it serves a request is no attempt of that request's sender.
        """
        served = False
        for one in self.above(id):
            role = self._roles[one]
            if role >= Role.CALL or (role >= Role.REQUEST and not served):
                return True
            served = served or role == Role.SERVED
        return False

    def encloses_call(self, id: Id) -> bool:
        """Whether a call of a model is inside of this span."""
        return id in self._around

    def steps(self) -> set[Id]:
        """The spans that are steps."""
        return {id for id in self._roles if self.is_step(id)}

    def bearers(self, used: Collection[Id]) -> set[Id]:
        """Of the spans that say what tokens were used, those that count: each token once.

        A span around another only sums up; an SDK's own span repeats what was derived around it.
        """
        bearing = {id for id in used if self.told_by(id) not in used}
        around = set[Id]()
        for id in bearing:
            self._mark(around, id)
        return bearing - around

    def above(self, id: Id) -> Iterator[Id]:
        """The known spans around one, from the innermost, at most `MOST_AROUND`."""
        one = self._parents[id]
        for _ in range(MOST_AROUND):
            if one == id or one not in self._roles:
                return
            yield one
            one = self._parents[one]

    def _mark(self, around: set[Id], id: Id) -> None:
        """Add what encloses a span."""
        one = self._parents[id]
        while one and one not in around:
            around.add(one)
            one = self._parents.get(one, one)

    def _find_beside(self, calls: Iterable[CallTime[Id]]) -> None:
        theirs: list[CallTime[Id]] = []
        ours: dict[Hashable, list[CallTime[Id]]] = {}
        """By the parent, and by the process."""
        for call in calls:
            if self._roles[call.id] == Role.CALL:
                theirs.append(call)
                continue
            ours.setdefault(self._parents[call.id], []).append(call)
            if call.process is not None:
                ours.setdefault((call.process,), []).append(call)
        for some in ours.values():
            some.sort(key=_start)
        for call in theirs:
            places = (call.id, *takewhile(self._is_passed, self.above(call.id)))
            for key in ((call.process,), *(self._parents[place] for place in places)):
                some = ours.get(key, ())
                first = bisect_left(some, call.start_ns, key=_start)
                for own in islice(some, first, first + MOST_BESIDE):
                    if call.is_beside(own):
                        self._beside[call.id] = own.id

    def told_by(self, id: Id) -> Id | None:
        """The call that a span tells of once more: ours of a model, or a tool; inside or beside it."""
        if self._roles[id] == Role.STEP:
            return self._tools.told_by(id)
        if not self._have_ours or self._roles[id] != Role.CALL:
            return None
        if id in self._beside:
            return self._beside[id]
        around = next(dropwhile(self._is_passed, self.above(id)), None)
        return around if around is not None and self._roles[around] == Role.OWN_CALL else None

    def _around_tool(self, id: Id) -> Iterator[Id]:
        """What encloses the span of a tool, up to a call of a model."""
        return takewhile(lambda one: self._roles[one] < Role.CALL, self.above(id))

    def _is_passed(self, id: Id) -> bool:
        """Whether what is inside of a span may tell of a call outside of it; of a request it may not."""
        return self._roles[id] in (Role.OTHER, Role.CALL)


def _start(call: CallTime[Any] | ToolTime[Any]) -> int:
    return call.start_ns
