"""What a fork or a resume is to do: written by who starts it, read by the process that does it."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from playhead_semconv.errors import UsageError

Mode: TypeAlias = Literal["fork", "resume"]

Unknown: TypeAlias = Literal["resend", "skip"]
"""What becomes of something that was sent, may have had its effect, and was not answered."""

Reopen: TypeAlias = Literal["again", "fresh"]
"""What a server is told that the tape leaves open: all that it was told, or nothing but who asks."""


class Edit(msgspec.Struct, frozen=True):
    """A change of a JSON document: at ``path`` (see `playhead_semconv.rerun.edits`) stands ``value``."""

    path: str
    value: Any = None
    remove: bool = False
    add: bool = False
    """A name that is not there; in a list, an item before that place."""


class Plan(msgspec.Struct, frozen=True):
    """A fork or resume. The tape beside it ends where the world answers; ids are those of that tape."""

    mode: Mode
    origin: str = ""
    """Run id of the run whose tape it is, and behind a colon the step where a fork begins."""
    agrees: bool = False
    """The program is to ask what the tape holds, up to its end; else it may part from it earlier."""
    unknown: dict[str, Unknown] = {}
    """By exchange id."""
    edits: dict[str, list[Edit]] = {}
    """By exchange id: changes of a request, which goes to the world."""
    changed: list[int] = []
    """Numbers of requests whose answers on the tape are not those of the origin."""
    offline: bool = False
    """Nothing goes to the world."""
    reopen: Reopen = "again"
    """How a connection goes live that is open where the tape ends."""
    states: dict[str, list[Edit]] = {}
    """By id: changes of a state that the program says, and goes on with."""


def write_plan(plan: Plan) -> bytes:
    """``plan`` as JSON."""
    return msgspec.json.encode(plan)


def read_plan(data: bytes) -> Plan:
    """The inverse of `write_plan`. `UsageError`."""
    try:
        return msgspec.json.decode(data, type=Plan)
    except msgspec.DecodeError as problem:
        raise UsageError("the plan of the fork cannot be read", cause=str(problem)) from None
