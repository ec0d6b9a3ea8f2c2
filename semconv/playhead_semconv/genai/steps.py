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
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import IntEnum
from typing import Final, Generic, TypeVar

from playhead_semconv.values import GenAiOperationName

Id = TypeVar("Id", str, bytes)

FRAMES: Final = frozenset((GenAiOperationName.INVOKE_AGENT, GenAiOperationName.INVOKE_WORKFLOW))
"""GenAI operations that enclose steps and are not steps themselves."""

CALLS: Final = frozenset(
    (
        GenAiOperationName.CHAT,
        GenAiOperationName.GENERATE_CONTENT,
        GenAiOperationName.TEXT_COMPLETION,
        GenAiOperationName.EMBEDDINGS,
    )
)
"""GenAI operations that are calls of a model, whether or not they name it."""


class Role(IntEnum):
    """What a span is for the count of steps."""

    OTHER = 0
    REQUEST = 1
    """An attempt over HTTP, gRPC or a WebSocket."""
    STEP = 2
    """A tool, or another operation that calls no model."""
    CALL = 3
    """A call of a model, as somebody tells it."""
    OWN_CALL = 4
    """A call of a model that we derived from its bytes."""


class Nesting(Generic[Id]):
    """How the spans of a run enclose each other.

    They may come in any order, but for calls of ours, which come before what they enclose.
    """

    def __init__(self, spans: Iterable[tuple[Id, Id, Role]] = ()) -> None:
        """``spans``: id, id of the parent (empty for a root) and role of each."""
        self._parents: dict[Id, Id] = {}
        self._roles: dict[Id, Role] = {}
        self._around: set[Id] = set()
        """Ids of what encloses a call, also of spans that have not come."""
        for id, parent, role in spans:
            self._parents[id], self._roles[id] = parent, role
        for id, role in self._roles.items():
            self._note(id, role)

    def add(self, id: Id, parent: Id, role: Role) -> None:
        """Add a span, or what is known of it now."""
        self._parents[id], self._roles[id] = parent, role
        self._note(id, role)

    def is_step(self, id: Id) -> bool:
        """Whether this span is a step."""
        role = self._roles[id]
        if role >= Role.CALL:
            return id not in self._around and self._retold(id) is None
        return role == Role.STEP or (role == Role.REQUEST and self.is_bare(id))

    def encloses_call(self, id: Id) -> bool:
        """Whether a call of a model is inside of this span."""
        return id in self._around

    def is_bare(self, id: Id) -> bool:
        """Whether no call, tool or other request encloses this one."""
        return all(self._roles[one] == Role.OTHER for one in self.above(id))

    def steps(self) -> set[Id]:
        """The spans that are steps."""
        return {id for id in self._roles if self.is_step(id)}

    def bearers(self, used: Collection[Id]) -> set[Id]:
        """Of the spans that say what tokens were used, those that count: each token once.

        A span around another only sums up; an SDK's own span repeats what was derived around it.
        """
        bearing = {id for id in used if self._retold(id) not in used}
        around = set[Id]()
        for id in bearing:
            self._mark(around, id)
        return bearing - around

    def above(self, id: Id) -> Iterator[Id]:
        """The known spans around one, from the innermost to the outermost."""
        seen, one = {id}, self._parents.get(id)
        while one in self._roles and one not in seen:
            yield one
            seen.add(one)
            one = self._parents[one]

    def _note(self, id: Id, role: Role) -> None:
        if id in self._around or (role >= Role.CALL and self._retold(id) is None):
            self._mark(self._around, id)

    def _mark(self, around: set[Id], id: Id) -> None:
        """Add what encloses a span."""
        one = self._parents[id]
        while one and one not in around:
            around.add(one)
            one = self._parents.get(one, one)

    def _retold(self, id: Id) -> Id | None:
        """Our call that an SDK's own span tells of once more inside it; None if it does not."""
        if self._roles[id] != Role.CALL:
            return None
        for one in self.above(id):
            role = self._roles[one]
            if role in (Role.REQUEST, Role.STEP):
                return None
            if role == Role.OWN_CALL:
                return one
        return None
