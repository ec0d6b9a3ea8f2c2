"""Plans of forks and resumes: one process writes a plan, the process that it starts reads it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from playhead_core.errors import UsageError

Mode: TypeAlias = Literal["fork", "resume"]

Unknown: TypeAlias = Literal["resend", "skip", "rule"]
"""What happens to a request that was sent, may have had its effect, and was not answered.

``rule``: of a call that is done once: what its claim and the program's own rule say.
"""

Reopen: TypeAlias = Literal["again", "fresh"]
"""What a server receives again on a connection that is open at the end of the tape.

``again``: all messages; ``fresh``: only the handshake.
"""


class Edit(msgspec.Struct, frozen=True):
    """An edit of a JSON document: sets ``path`` (see `playhead_core.rerun.edits`) to ``value``."""

    path: str
    value: Any = None
    remove: bool = False
    add: bool = False
    """Add a name that is missing; in a list, insert an item before that index."""


class Plan(msgspec.Struct, frozen=True):
    """A fork or resume. Its tape ends where live responses begin; ids are those of that tape."""

    mode: Mode
    origin: str = ""
    """Run id of the run that the tape belongs to, then a colon and the step where a fork begins."""
    agrees: bool = False
    """Whether the program must send all requests of the tape; else it may deviate before its end."""
    unknown: dict[str, Unknown] = {}
    """What happens to unanswered requests, by exchange id."""
    edits: dict[str, list[Edit]] = {}
    """Edits of requests that are sent live, by exchange id."""
    changed: list[int] = []
    """Numbers of requests whose answers on the tape differ from those of the origin."""
    offline: bool = False
    """Whether nothing may be sent live."""
    reopen: Reopen = "again"
    """How a connection becomes live that is open at the end of the tape."""
    states: dict[str, list[Edit]] = {}
    """Edits of a state that the program reports and continues with, by id."""


def write_plan(plan: Plan) -> bytes:
    """Return ``plan`` as JSON."""
    return msgspec.json.encode(plan)


def read_plan(data: bytes) -> Plan:
    """The inverse of `write_plan`. Raises `UsageError`."""
    try:
        return msgspec.json.decode(data, type=Plan)
    except msgspec.DecodeError as problem:
        raise UsageError("the plan of the fork cannot be read", cause=str(problem)) from None
