"""Spans that no SDK makes: arbitrary valid messages, unknown fields, repeated keys, any order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from support.letters import LETTERS

from playhead_receiver.storage import StoredSpan

varint = st.integers(0, 2**64 - 1)


def encoded(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, payload: bytes) -> bytes:
    return encoded(number << 3 | 2) + encoded(len(payload)) + payload


texts = st.one_of(
    st.text(LETTERS, max_size=20),
    st.text(alphabet='[]{}",: \\n1a', min_size=90, max_size=400),
    st.lists(
        st.dictionaries(st.text(LETTERS, max_size=3), st.text(LETTERS, max_size=90), max_size=3),
        max_size=8,
    ).map(json.dumps),
    st.integers(0, 30).map(lambda count: json.dumps([{"role": "user", "content": "x" * 70}] * count)),
)
unknown = st.one_of(
    st.tuples(st.integers(20, 70_000), varint).map(lambda f: encoded(f[0] << 3) + encoded(f[1])),
    st.tuples(st.integers(20, 70_000), st.binary(max_size=200)).map(lambda f: field(*f)),
    st.tuples(st.integers(20, 90), st.binary(min_size=8, max_size=8)).map(
        lambda f: encoded(f[0] << 3 | 1) + f[1]
    ),
    st.tuples(st.integers(20, 90), st.binary(min_size=4, max_size=4)).map(
        lambda f: encoded(f[0] << 3 | 5) + f[1]
    ),
)
values = st.one_of(
    texts.map(lambda text: field(1, text.encode())),
    st.binary(max_size=300).map(lambda data: field(7, data)),
    st.lists(texts, max_size=6).map(
        lambda each: field(5, b"".join(field(1, field(1, one.encode())) for one in each))
    ),
    st.dictionaries(st.text(LETTERS, max_size=5), texts, max_size=4).map(
        lambda each: field(
            6,
            b"".join(
                field(1, field(1, key.encode()) + field(2, field(1, one.encode())))
                for key, one in each.items()
            ),
        )
    ),
    varint.map(lambda number: encoded(3 << 3) + encoded(number)),
    st.just(b""),
    unknown,
)
keys = st.one_of(
    st.sampled_from(["gen_ai.input.messages", "same", "", "prompt"]),
    st.integers(0, 3).map(lambda number: f"llm.input_messages.{number}.message.content"),
    st.text(LETTERS, max_size=10),
)
attributes = st.tuples(keys, values, st.lists(unknown, max_size=1)).map(
    lambda a: field(1, a[0].encode()) + field(2, a[1]) + b"".join(a[2])
)
members = st.one_of(
    attributes.map(lambda a: field(9, a)),
    st.tuples(st.text(LETTERS, max_size=5), attributes).map(
        lambda e: field(11, field(2, e[0].encode()) + field(3, e[1]))
    ),
    st.text(LETTERS, max_size=8).map(lambda name: field(5, name.encode())),
    unknown,
)
envelopes = st.tuples(
    st.lists(members, max_size=60),
    st.lists(unknown, max_size=2),
    st.lists(unknown, max_size=2),
    st.booleans(),
)


drawn_spans = st.lists(envelopes, min_size=1, max_size=6)


def odd_spans(drawn: list[Any], trace_ids: Sequence[bytes]) -> list[StoredSpan]:
    """The output of `drawn_spans` as spans of these traces in turn."""
    spans: list[StoredSpan] = []
    for number, (inside, beside, around, leading) in enumerate(drawn, 1):
        trace_id, span_id = trace_ids[number % len(trace_ids)], number.to_bytes(8, "big")
        span = field(1, trace_id) + field(2, span_id) + b"".join(inside)
        scoped = field(2, b"".join(beside) + field(2, span))
        resource = field(1, field(1, field(1, b"service.name") + field(2, field(1, b"shop"))))
        otlp = resource + scoped if leading else scoped + resource
        spans.append(StoredSpan(trace_id, span_id, otlp + b"".join(around)))
    return spans
