"""Requests as programs make them, with the standard library: once for real, then from other sources."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import random
import secrets
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.tapes.volatile import START_NS, request

from playhead_core.normalize import Bijection, verify
from playhead_instrumentation.replayer.volatile import HandedOut, Proposal, Volatile

Clock = Callable[[], int]


def agent(now_ns: Clock, draw: random.Random, note: Callable[[float, int], None]) -> Iterator[Any]:
    """Three requests of a conversation; what one said stands in the next."""

    def now() -> dt.datetime:
        return dt.datetime.fromtimestamp(now_ns() / 1e9, dt.UTC)

    def number() -> float:
        drawn = draw.random()
        note(drawn, 53)
        return drawn

    def bits() -> int:
        drawn = draw.getrandbits(128)
        note(drawn, 128)
        return drawn

    started_ns = now_ns()
    session, thread = uuid.uuid4(), secrets.token_urlsafe(16)
    messages: list[dict[str, Any]] = [
        {
            "role": "system",
            "content": f"Today is {now():%A, %B %d, %Y}, {now():%H:%M:%S}. Session {session}.",
        },
        {
            "role": "user",
            "content": "Refund order 4711, 19.99 EUR.",
            "id": f"msg_{uuid.uuid4().hex[:24]}",
        },
    ]
    for turn in range(3):
        yield {
            "model": "gpt-4o-2024-08-06",
            "temperature": 0.7,
            "user": str(session),
            "metadata": {"thread": thread, "created": int(now_ns() / 1e9), "ms": now_ns() // 10**6},
            "trace": f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01",
            "messages": messages,
            "stamps": [
                now().isoformat(),
                now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                now_ns() / 1e9,
                now_ns(),
            ],
        }
        call = f"call_{uuid.uuid4().hex[:8]}"
        name = next(tempfile._get_candidate_names())  # type: ignore[attr-defined]
        result = {
            "call": call,
            "path": f"/tmp/tmp{name}/out-{uuid.UUID(int=bits(), version=4)}.json",
            "token": secrets.token_hex(8),
            "nonce": base64.b64encode(os.urandom(12)).decode(),
            "key": secrets.randbits(64),
            "jitter": number(),
            "took_s": (now_ns() - started_ns) / 1e9,
            "log": f"{now():%Y-%m-%d %H:%M:%S},{now_ns() // 10**6 % 1000:03} INFO turn {turn}",
        }
        messages = [*messages, {"role": "tool", "tool_call_id": call, "content": json.dumps(result)}]


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch):
    """Puts other entropy in the place of the system's; tells what it gave."""

    def put(seed: int, handed_out: HandedOut | None) -> None:
        source = random.Random(f"system {seed}")

        def urandom(size: int) -> bytes:
            data = source.randbytes(size)
            if handed_out is not None:
                handed_out.note_bytes(data)
            return data

        monkeypatch.setattr(os, "urandom", urandom)
        monkeypatch.setattr(random, "_urandom", urandom)

        def name(self: Any) -> str:
            made = "".join(source.choices("abcdefghijklmnopqrstuvwxyz0123456789_", k=8))
            if handed_out is not None:
                handed_out.note_text(made)
            return made

        monkeypatch.setattr(tempfile._RandomNameSequence, "__next__", name)  # type: ignore[attr-defined]

    return put


@pytest.mark.parametrize("seed", range(20))
def test_a_conversation_is_recognised(sources: Callable[[int, HandedOut | None], None], seed: int):
    sources(seed, None)
    start_ns = START_NS
    jitter = random.Random(seed)
    recorded_times: list[int] = [start_ns]

    def real_ns() -> int:
        recorded_times.append(recorded_times[-1] + jitter.randrange(60, 80_000_000))
        return recorded_times[-1]

    recorded = list(agent(real_ns, random.Random(f"recorded {seed}"), lambda value, bits: None))
    # The replay's clock stands still, but for a microsecond a read and a leap to each exchange.
    handed_out = HandedOut()
    volatile = Volatile(handed_out, (start_ns, recorded_times[-1]))
    sources(seed + 1000, handed_out)
    virtual_ns = start_ns

    def read_ns() -> int:
        nonlocal virtual_ns
        virtual_ns += 1000
        handed_out.note_time(virtual_ns)
        return virtual_ns

    earlier = Bijection()
    replayed = agent(read_ns, random.Random(f"replayed {seed}"), handed_out.note_number)
    for index, now in enumerate(replayed):
        sides = request(recorded[index]), request(now)
        found = volatile.compare(*sides)
        assert isinstance(found, Proposal), str(found)
        assert volatile.accept(found) is None
        assert verify(*sides, found.pairs, earlier) is None
        for other in range(3):
            if other != index:
                assert not isinstance(volatile.compare(request(recorded[other]), sides[1]), Proposal)
        changed = json.loads(json.dumps(now).replace("order 4711", "order 4712"))
        assert not isinstance(volatile.compare(sides[0], request(changed)), Proposal)
        virtual_ns += (recorded_times[-1] - start_ns) // 4
    assert index == 2
