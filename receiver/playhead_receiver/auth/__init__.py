"""Access control: tokens with scopes, tenants, and the audit log."""

from playhead_receiver.auth.audit import Audit, Note
from playhead_receiver.auth.guard import Caller, Forbidden, Guard, Unauthenticated
from playhead_receiver.auth.tokens import SCOPES, Scope, Token, TokenBook

__all__ = [
    "SCOPES",
    "Audit",
    "Caller",
    "Forbidden",
    "Guard",
    "Note",
    "Scope",
    "Token",
    "TokenBook",
    "Unauthenticated",
]
