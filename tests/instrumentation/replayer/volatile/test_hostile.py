"""Large bodies and bodies made to be slow: each is compared in a time linear in its length."""

from __future__ import annotations

import base64
import json
import random
import time
import uuid
from collections.abc import Callable

import pytest
from support.tapes.volatile import Replay, request

from playhead_core.normalize import Pair, verify
from playhead_instrumentation.replayer.volatile import Proposal

BODIES: list[tuple[str, Callable[[int, str], str]]] = [
    ("dates", lambda size, sign: f"2026-11-22 10:00:0{sign} " * (size // 20)),
    ("digits", lambda size, sign: sign * size),
    ("hex", lambda size, sign: f"a{sign}" * (size // 2)),
    ("dashes", lambda size, sign: f"-_{sign}" * (size // 3)),
    ("colons", lambda size, sign: f"1{sign}:" * (size // 3)),
    ("form", lambda size, sign: f"a=%2{sign}&" * (size // 6)),
    ("brackets", lambda size, sign: "[" * size + sign),
    ("objects", lambda size, sign: '{"a":' * (size // 5) + sign),
    ("numbers", lambda size, sign: json.dumps([1] * (size // 3) + [int(sign)])),
    ("texts", lambda size, sign: json.dumps(["a"] * (size // 5) + [sign])),
    ("names", lambda size, sign: json.dumps({f"{number}{sign}": 1 for number in range(size // 10)})),
    ("end", lambda size, sign: "a" * size + sign),
    ("months", lambda size, sign: f"November 22, 202{sign} " * (size // 18)),
    (
        "base64",
        lambda size, sign: base64.b64encode(random.Random(sign).randbytes(size)).decode(),
    ),
]


@pytest.mark.parametrize(("name", "make"), BODIES)
def test_a_body_of_megabytes(name: str, make: Callable[[int, str], str]):
    replay = Replay()
    replay.reads(*range(30))
    for seed in range(1000):
        replay.draws(16, seed)

    def took_s(size: int) -> float:
        sides = [make(size, sign).encode() for sign in "12"]
        start = time.process_time()
        replay.compare(*sides)
        return time.process_time() - start

    took_s(1000)
    small, large = took_s(250_000), took_s(2_000_000)
    assert large < 8 * 4 * small + 0.5


def test_a_request_in_too_many_places():
    replay = Replay()
    replay.reads(4.0)
    sides = [json.dumps([f"10:00:0{after}"] * 10_001).encode() for after in (7, 4)]
    assert "10000 places" in replay.refuses(*sides).why
    data = replay.draws(4096)
    long = [one * 1 for one in ("ab" * 4096, data.hex())]
    replay.accepts(*(json.dumps([side] * 100).encode() for side in long))


def test_a_tape_with_many_pairs_is_verified_soon():
    draw = random.Random(1)
    ids = [[str(uuid.UUID(bytes=draw.randbytes(16), version=4)) for _ in range(5000)] for _ in range(2)]
    pairs = [Pair(one, other, "uuid:4") for one, other in zip(*ids, strict=True)]
    # What all begins alike is found by hashing, not by looking at one after the other.
    form = "time:dddd-dd-ddTdd:dd:ddZ"
    pairs += [
        Pair(
            f"2026-11-22T10:{n // 60:02}:{n % 60:02}Z", f"2026-11-22T09:{n // 60:02}:{n % 60:02}Z", form
        )
        for n in range(3600)
    ]
    texts = [" ".join(pair[side] for pair in pairs) for side in (0, 1)]
    start = time.process_time()
    assert verify(request(texts[0]), request(texts[1]), pairs) is None
    assert time.process_time() - start < 20


def test_many_accepted_values_do_not_slow_down_translation():
    replay = Replay()

    def took_s(count: int) -> float:
        for seed in range(count):
            now = replay.draws(16, seed).hex()
            replay.accepts(random.Random(f"{seed}").randbytes(16).hex(), now)
        answer = base64.b64encode(random.Random(1).randbytes(300_000))
        start = time.process_time()
        replay.volatile.translated(answer)
        return time.process_time() - start

    few, many = took_s(5), took_s(500)
    assert many < 4 * few + 0.2


def test_what_is_nested_too_deep_is_not_compared():
    replay = Replay()
    body = b'{"a":' * 250 + b"1" + b"}" * 250
    assert isinstance(replay.compare(body.replace(b"1", b"2"), body), Proposal) is False
    shallow = b'{"a":' * 150 + b"1" + b"}" * 150
    assert isinstance(replay.compare(shallow, shallow + b" "), Proposal)
