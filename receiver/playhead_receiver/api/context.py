"""The context that every endpoint receives: the caller, and the data of the caller's tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPBearer

from playhead_checkpoint.claims.leased import LeasedClaims
from playhead_checkpoint.store.sql import SqlCheckpoints
from playhead_core.errors import UsageError
from playhead_receiver.api.serving import Serving
from playhead_receiver.api.tree import Tree
from playhead_receiver.auth import Caller, Scope
from playhead_receiver.auth.audit import Action
from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.api.maintenance import StoredCheckpoints
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.content.references import References
from playhead_receiver.tenants.tenants import TenantServices
from playhead_replay import Run

NO_REFERENCES = References()
BEARER = HTTPBearer(auto_error=False, description="A token: `playhead token create`.")

Q = Annotated[
    str,
    Query(
        max_length=2000,
        description='Query for runs: `agent:refund user:anna tokens>=1000 since:2d .plan:x "order 81"`.',
    ),
]
T = TypeVar("T")

RunName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="A name, `last`, `failed`, a trace id, or a prefix of one of 8 digits.",
    ),
]
TraceId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
SpanId = Annotated[str, Path(pattern="^[0-9a-f]{16}$")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")]


class RequestContext:
    """The caller of a request, and the data of the caller's tenant."""

    def __init__(self, caller: Caller, services: TenantServices, serving: Serving) -> None:
        self.caller = caller
        self.references = NO_REFERENCES if caller.tenant else serving.references
        self.services = services
        self.tallies = serving.tallies
        self.agents = None if caller.tenant else serving.agents
        self._audit = serving.audit
        self._loaded = serving.loaded
        self._guard = serving.guard
        self._guarded = serving.guard.required

    @property
    def store(self) -> Store:
        """The store of the caller's tenant."""
        return self.services.store

    @property
    def checkpoints(self) -> SqlCheckpoints:
        """The checkpoints of the caller's tenant. `StoreUnavailable`."""
        return needed(self.store, StoredCheckpoints).checkpoints()

    @property
    def claims(self) -> LeasedClaims:
        """The claims of the caller's tenant. `StoreUnavailable`."""
        return needed(self.store, StoredCheckpoints).claims()

    def offered(self, part: type[T]) -> T:
        """The store as one of the optional protocols. `NotOffered`."""
        return needed(self.store, part)

    def run(self, name: str) -> RunSummary:
        """A run by any of its names. `RunUnknown`, `RunAmbiguous`."""
        self._loaded.forget_deleted(self.store)
        return self.store.resolve(name)

    def read(self, name: str) -> Run:
        """Load a run by any of its names, and write a read entry to the audit log.

        `RunUnknown`, `RunAmbiguous`.
        """
        summary = self.run(name)
        self.note("read", summary.trace_id)
        return self.load(summary)

    def load(self, run: RunSummary) -> Run:
        """Load a run. Requests share the result, so it must not be modified."""
        return self._loaded.get(self.store, run, Run.load)

    def tree(self, run: RunSummary) -> Tree:
        """Load the tree of a run's spans. Requests share the result."""
        return self._loaded.get(self.store, run, Tree.load)

    def note(self, action: Action, subject: str) -> None:
        """Write an entry to the audit log, if callers have names."""
        if self._guarded or self.caller.name:
            who = self.caller
            self._audit.note(who.token, who.name, who.tenant, action, subject)

    def tokens(self) -> list[Any]:
        """The tokens of the caller's tenant, without their secrets."""
        return self._guard.tokens(self.caller.tenant)

    def notes(self, before: int | None, limit: int) -> list[Any]:
        """The audit log of the caller's tenant."""
        return self._audit.notes(self.caller.tenant, before, limit)


def serving_of(request: Request) -> Serving:
    """The `Serving` of the application."""
    return request.app.state.serving


SCOPE_OF: dict[Callable[..., Any] | None, Scope] = {}
"""Scopes by the dependency that admits a caller."""


def _needs(scope: Scope) -> Any:
    def admitted(request: Request, _: Annotated[Any, Depends(BEARER)]) -> RequestContext:
        serving = serving_of(request)
        caller = serving.guard.admit(request.headers.get("authorization", ""), scope)
        services = serving.tenants.services(caller.tenant)
        return RequestContext(caller, services, serving)

    SCOPE_OF[admitted] = scope
    return Depends(admitted)


Reading = Annotated[RequestContext, _needs("read")]
Ingesting = Annotated[RequestContext, _needs("ingest")]
Controlling = Annotated[RequestContext, _needs("control")]
Administrating = Annotated[RequestContext, _needs("admin")]


def hex_id(text: str, size_bytes: int, what: str) -> bytes:
    """An id from a query. `UsageError`."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != size_bytes:
        raise UsageError(f"{what} is not an id of {2 * size_bytes} hexadecimal digits")
    return found
