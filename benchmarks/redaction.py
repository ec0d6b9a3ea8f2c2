"""What the search for credentials costs on the caller's path: per KB of a body, and per chunk of a
stream.

    python benchmarks/redaction.py
"""

from __future__ import annotations

import json
import os
import time
import timeit
from collections.abc import Callable

from playhead_instrumentation.redaction import Redactor

VALUES = 20
"""Number of known values, as in a typical environment."""


def cost_us(call: Callable[[], object], number: int) -> float:
    """Processor time of one call in µs, the minimum of 15 rounds."""
    rounds = timeit.repeat(call, number=number, repeat=15, timer=time.process_time)
    return min(rounds) / number * 1e6


def main() -> None:
    """Print the table."""
    redactor = Redactor()
    for number in range(VALUES):
        redactor.learn(("sk-proj-" if number % 3 == 0 else "") + os.urandom(16).hex())
    text = "the quick brown fox jumps over a lazy dog " * 200
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    delta = {"id": "chatcmpl-123", "choices": [{"index": 0, "delta": {"content": " the"}}]}
    event = f"data: {json.dumps(delta)}\n\n".encode()
    scrub = redactor.response("text/event-stream", "")
    kilobytes = len(body) / 1024
    print(f"body      {cost_us(lambda: redactor.body(body), 200) / kilobytes:6.2f} µs/KB")
    print(f"chunk     {cost_us(lambda: scrub.chunk(event), 2000):6.2f} µs ({len(event)} bytes)")
    print(
        f"one find  {cost_us(lambda: body.find(b'zzqq'), 200) / kilobytes:6.2f} µs/KB (for comparison)"
    )


if __name__ == "__main__":
    main()
