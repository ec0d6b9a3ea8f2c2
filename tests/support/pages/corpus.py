"""Runs of every shape, small: what trees, lists and sums have to agree on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.answers.dialects import OPENINFERENCE, OPENLLMETRY
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import HandMade

from playhead_receiver.storage import Batch, StoredSpan
from playhead_semconv import attributes as a

CHAT = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}
UNPRICED = {**CHAT, "gen_ai__request__model": "nobody-knows-1"}
MANY = {"gen_ai__usage__input_tokens": 1234567, "gen_ai__usage__output_tokens": 89}
FEW = {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 0}
PARTS = {
    "gen_ai__usage__input_tokens": 900,
    "gen_ai__usage__cache_read__input_tokens": 500,
    "gen_ai__usage__output_tokens": 60,
    "gen_ai__usage__reasoning__output_tokens": 40,
}
AT_ONCE = START_NS + 100_000


def _dialect(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in attributes.items()}


SPANS: dict[str, Callable[[bytes], list[StoredSpan]]] = {
    "without a root": lambda trace: [
        span_of(trace, one, parent=99, name=f"lost {one}", **CHAT) for one in (1, 2)
    ],
    "a failure below a failure": lambda trace: [
        span_of(trace, 1, name="top", error=True),
        span_of(trace, 2, parent=1, error=True, **CHAT),
    ],
    "several roots": lambda trace: [
        span_of(trace, one, name=f"root {one}", **CHAT, **MANY) for one in (1, 2, 3)
    ],
    "a ring": lambda trace: [
        span_of(trace, one, parent=one % 3 + 1, name=f"of {one}") for one in (1, 2, 3)
    ],
    "a ring of calls": lambda trace: [
        span_of(trace, one, parent=one % 2 + 1, name=f"call {one}", **CHAT, **FEW) for one in (1, 2)
    ],
    "a call below a ring that begins first": lambda trace: [
        span_of(trace, one, parent={1: 2, 2: 3, 3: 2}[one], name=f"call {one}", **CHAT, **MANY)
        for one in (1, 2, 3)
    ],
    "its own parent": lambda trace: [span_of(trace, 1, parent=1, name="self", **CHAT, **FEW)],
    "deep": lambda trace: [
        span_of(trace, one, parent=one - 1, name=f"level {one}", **(CHAT if one % 10 == 0 else {}))
        for one in range(1, 131)
    ],
    "wide": lambda trace: [
        span_of(
            trace,
            one,
            parent=min(one - 1, 1),
            name=f"call {one % 7}",
            error=one % 50 == 0,
            **CHAT,
            **FEW,
        )
        for one in range(1, 301)
    ],
    "no price": lambda trace: [
        span_of(trace, 1, name="top"),
        span_of(trace, 2, parent=1, **UNPRICED, **MANY),
    ],
    "a price for a part": lambda trace: [
        span_of(trace, 1, name="top"),
        span_of(trace, 2, parent=1, **UNPRICED, **FEW),
        span_of(trace, 3, parent=1, **CHAT, **PARTS),
    ],
    "one that sums up those below": lambda trace: [
        span_of(trace, 1, name="invoke_agent", gen_ai__operation__name="invoke_agent", **MANY),
        span_of(trace, 2, parent=1, **CHAT, **MANY),
    ],
    "all at once": lambda trace: [
        span_of(trace, one, parent=min(one - 1, 1), name=f"now {one}", end_ns=AT_ONCE, **CHAT)
        for one in range(1, 9)
    ],
    "it ends before it begins": lambda trace: [
        span_of(trace, 1, name="backwards", end_ns=START_NS - 5),
        span_of(trace, 2, parent=1, name="no time", end_ns=START_NS + 2000, **CHAT),
    ],
    "a child that begins first": lambda trace: [
        span_of(trace, 9, name="late parent"),
        span_of(trace, 2, parent=9, name="early child", **CHAT),
    ],
    "no name": lambda trace: [span_of(trace, 1, name=""), span_of(trace, 2, parent=1, name=" ", **CHAT)],
    "words of OpenInference": lambda trace: [span_of(trace, 1, **_dialect(OPENINFERENCE))],
    "words of OpenLLMetry": lambda trace: [span_of(trace, 1, **_dialect(OPENLLMETRY))],
    "tools": lambda trace: [
        span_of(trace, 1, name="top"),
        *(
            span_of(
                trace,
                one,
                parent=1,
                name="execute_tool find",
                gen_ai__operation__name="execute_tool",
                gen_ai__tool__name="find",
                error=one == 3,
            )
            for one in (2, 3, 4)
        ),
    ],
}


def _interrupted(made: HandMade) -> None:
    made.chat()
    made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})


def _unanswered(made: HandMade) -> None:
    call = made.begin("chat gpt-4o", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
    made.exchange(request=b'{"model":"gpt-4o"}', answered=False, span=call)


def _no_call_around(made: HandMade) -> None:
    for _ in range(2):
        made.exchange(request=b'{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}')
    made.exit()


def _failed(made: HandMade) -> None:
    made.chat(tokens=(10_000_000, 3))
    made.tool("find", "{}", error="KeyError: x")
    made.exit(1)


TAPES: dict[str, Callable[[HandMade], None]] = {
    "interrupted": _interrupted,
    "not answered": _unanswered,
    "requests without a call": _no_call_around,
    "failed": _failed,
}


def batches() -> list[Batch]:
    """Each run of the corpus."""
    made = [Batch(make(bytes([number]) * 16)) for number, make in enumerate(SPANS.values(), 1)]
    for number, say in enumerate(TAPES.values(), 100):
        tape = HandMade(bytes([number]) * 16, bytes([number]) * 16).start()
        say(tape)
        made.append(Batch(tape.spans, tape.facts, {}))
    return made
