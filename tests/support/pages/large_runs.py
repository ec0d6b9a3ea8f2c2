"""Runs that are large: many spans, or long conversations."""

from __future__ import annotations

import json
from collections.abc import Iterator

from support.tapes.batches import START_NS, span_of

from playhead_receiver.storage import Batch, Store, StoredSpan

AT_ONCE = 5000
CALL = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


def many_spans(store: Store, count: int) -> str:
    """A run with so many calls of a model, each the parent of eight. Its trace id."""
    trace = count.to_bytes(16, "big")
    made = (
        span_of(
            trace,
            number,
            parent=(number + 6) // 8,
            name=f"call {number % 40}",
            gen_ai__usage__input_tokens=number * 7919 % 9973,
            gen_ai__usage__output_tokens=number % 331,
            error=number % 1000 == 999,
            **CALL,
        )
        for number in range(1, count + 1)
    )
    _committed(store, made, AT_ONCE)
    return trace.hex()


def many_runs(store: Store, runs: int, calls: int) -> None:
    """So many runs with so many calls of a model each."""
    made = (
        span_of(
            run.to_bytes(16, "big"),
            number,
            parent=min(number - 1, 1),
            service=f"agent {run % 9}",
            **CALL,
        )
        for run in range(1, runs + 1)
        for number in range(1, calls + 1)
    )
    _committed(store, made, AT_ONCE)


def long_talk(store: Store, calls: int) -> str:
    """A run of calls, each of which sends all that was said before again. Its trace id."""
    trace = b"\xaa" + calls.to_bytes(15, "big")

    def made() -> Iterator[StoredSpan]:
        yield span_of(trace, 1, name="agent", end_ns=START_NS + (calls + 2) * 1000)
        history: list[str] = []
        for number in range(2, calls + 2):
            history.append(_message("user", f"question {number} of a long talk"))
            answer = _message("assistant", f"answer {number}, in some words")
            yield span_of(
                trace,
                number,
                parent=1,
                gen_ai__input__messages=f"[{','.join(history)}]",
                gen_ai__output__messages=f"[{answer}]",
                gen_ai__usage__input_tokens=9 * number,
                gen_ai__usage__output_tokens=9,
                **CALL,
            )
            history.append(answer)

    _committed(store, made(), 100)
    return trace.hex()


def _message(role: str, text: str) -> str:
    return json.dumps({"role": role, "parts": [{"type": "text", "content": text}]})


def _committed(store: Store, made: Iterator[StoredSpan], at_once: int) -> None:
    spans: list[StoredSpan] = []
    for span in made:
        spans.append(span)
        if len(spans) == at_once:
            store.commit(Batch(spans))
            spans = []
    store.commit(Batch(spans))
    while store.sum_up():
        pass
