"""The hand-made tape of a process that serves: overlapping requests with lanes below them."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = b"\x51" * 16
PROCESS = b"\x52" * 16
MAIN = 7
DEEP = 1 << 63
"""Makes lane ids use all of their 64 bits."""


def trace_of(number: int) -> bytes:
    """The trace id of a request."""
    return b"request" + number.to_bytes(9, "big")


def root_of(number: int) -> int:
    """The root lane of a request."""
    return DEEP + 10 * number


def service_facts(requests: int, wide: int = 3) -> list[Fact]:
    """A boot, then ``requests`` of which ``wide`` overlap; each has eight facts.

    One of these is in a lane of the process, and one comes after the end of the request. For every tenth
    request, a heartbeat reports what was imported.
    """
    facts: list[Fact] = []

    def add(lane: int, name: str, trace: bytes = b"", body: bytes = b"", **more: Any) -> None:
        content = Content.of(body) if body else None
        id, attributes = more.get("id"), more.get("attributes", {})
        seq = len(facts)
        facts.append(Fact(seq, lane, name, trace, b"", id, None, attributes, content, INSTANCE, seq))

    def declare(lane: int, parent: int | None) -> None:
        above = "" if parent is None else f"{parent:016x}"
        names = {a.PLAYHEAD_LANE_NAME: f"lane {lane}", a.PLAYHEAD_LANE_PARENT: above}
        add(lane, e.PLAYHEAD_LANE, attributes=names)

    def step(number: int, place: int) -> None:
        root, trace = root_of(number), trace_of(number)
        id = ExchangeId(root, "inbound", 0)
        if place == 0:
            if number >= wide:
                declare(root, None)
            asked = {a.PLAYHEAD_EXCHANGE_DIRECTION: "in", a.PLAYHEAD_ASK_KEY: "GET /"}
            add(root, e.PLAYHEAD_EXCHANGE_REQUEST, trace, id=id, attributes=asked)
        elif place == 1:
            declare(root + 1, root)
            declare(root + 2, root + 1)
        elif place == 2:
            add(root + 2, e.PLAYHEAD_READ, body=b"read by %d" % number)
        elif place == 3:
            add(MAIN, e.PLAYHEAD_EFFECT, trace, body=b"done for %d" % number)
        elif place == 4:
            add(root, e.PLAYHEAD_EXCHANGE_END, trace, id=id, attributes={a.PLAYHEAD_END_HOW: "complete"})
        elif place == 5:
            add(root + 1, e.PLAYHEAD_READ, body=b"later, by %d" % number)
        if number % 10 == 0 and place == 5:
            add(
                MAIN,
                e.PLAYHEAD_PROCESS_HEARTBEAT,
                PROCESS,
                attributes={a.PLAYHEAD_RUN_MODULES: {"m": "1"}},
            )

    add(MAIN, e.PLAYHEAD_PROCESS_START, PROCESS, attributes={a.PLAYHEAD_RUN_MODE: "record"})
    declare(MAIN, None)
    add(MAIN, e.PLAYHEAD_READ, body=b"boot")
    for number in range(wide):
        declare(root_of(number), None)
    steps = sorted(
        (number * 6 // wide + place, number, place) for number in range(requests) for place in range(6)
    )
    for _, number, place in steps:
        step(number, place)
    return facts
