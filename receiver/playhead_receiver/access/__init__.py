"""Who may do what: tokens with scopes, tenants, and the log of who did what."""

from playhead_receiver.access.audit import Audit, Note
from playhead_receiver.access.guard import Caller, Forbidden, Guard, Unauthenticated
from playhead_receiver.access.scopes import SCOPES, Scope
from playhead_receiver.access.tenants import House, Tenants
from playhead_receiver.access.tokens import Token, TokenBook

__all__ = [
    "SCOPES",
    "Audit",
    "Caller",
    "Forbidden",
    "Guard",
    "House",
    "Note",
    "Scope",
    "Tenants",
    "Token",
    "TokenBook",
    "Unauthenticated",
]
