"""``/v1/audit``, ``/v1/tokens``, ``/v1/caller``: who has read or done what, who may, and who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from playhead_receiver.api.asked import Administrating, Limit, Reading
from playhead_receiver.api.models.operations import (
    AuditNote,
    AuditPage,
    CallerItem,
    TokenItem,
    TokenList,
)

router = APIRouter(tags=["audit"])


@router.get("/v1/audit")
def list_notes(
    asked: Administrating,
    limit: Limit = 100,
    before: Annotated[int | None, Query(ge=0, le=(1 << 63) - 1)] = None,
) -> AuditPage:
    """List audit log entries of the caller's tenant, newest first."""
    notes = [AuditNote.model_validate(note) for note in asked.notes(before, limit)]
    asked.note("read", "audit")
    return AuditPage(notes=notes, next=notes[-1].number if len(notes) == limit else None)


@router.get("/v1/tokens")
def list_tokens(asked: Administrating) -> TokenList:
    """List tokens of the caller's tenant by creation time, without secrets."""
    tokens = [TokenItem.model_validate(token) for token in asked.tokens()]
    asked.note("read", "tokens")
    return TokenList(tokens=tokens)


@router.get("/v1/caller")
def show_caller(asked: Reading) -> CallerItem:
    """Get the caller's name, tenant and scopes."""
    caller = asked.caller
    return CallerItem(name=caller.name, tenant=caller.tenant, scopes=sorted(caller.scopes))
