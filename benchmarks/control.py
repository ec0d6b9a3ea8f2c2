"""What control costs a boundary while nobody is connected: per exchange, and of it per hook.

python benchmarks/control.py
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable

from playhead_core.facts import Fact
from playhead_instrumentation.control.rules import RuleEvaluator
from playhead_instrumentation.control.server import ControlServer
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.decision import World
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import CountingGate
from playhead_instrumentation.redaction import Redactor
from playhead_semconv import attributes as a

BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
HEAD = {a.HTTP_RESPONSE_STATUS_CODE: 200}
CHUNKS = 10


class Nowhere:
    """A sink that numbers facts."""

    instance = bytes(16)

    def __init__(self) -> None:
        self._seq = 0

    def append(self, fact: Fact) -> int:
        """The number of the fact."""
        self._seq += 1
        return self._seq


def cost_us(call: Callable[[], object], number: int) -> float:
    """Processor time of one call in µs, the minimum of 25 rounds."""
    rounds = timeit.repeat(call, number=number, repeat=25, timer=time.process_time)
    return min(rounds) / number * 1e6


def exchange(driver: Driver) -> None:
    """One exchange with a streamed answer, as an edge makes it."""
    call: Call = driver.open("http", "POST http://127.0.0.1/v1/chat/completions", BODY, {})
    if call.pending_release is not None:
        call.release().wait()
    call.answer(lambda: None, lambda played: None)
    call.head(HEAD, call.arrive().wait())
    for _ in range(CHUNKS):
        call.part(b"data: {}\n\n", call.arrive().wait())
    call.end("complete", call.arrive().wait())


def main() -> None:
    """Print the table."""
    driver = Driver(Nowhere(), Redactor(), World(), CountingGate())
    without = cost_us(lambda: exchange(driver), 500)
    control_server = driver.control = ControlServer(driver, str, RuleEvaluator(lambda timeout_s: True))
    with_control = cost_us(lambda: exchange(driver), 500)
    call = driver.open("http", "GET /", b"", {})
    turn = driver.gate.arrive(None)
    print(f"exchange of {CHUNKS} chunks, control off  {without:7.2f} µs")
    print(f"exchange of {CHUNKS} chunks, control on   {with_control:7.2f} µs")
    print(f"more per exchange                 {with_control - without:7.2f} µs")
    for name, hook in (
        ("before it goes out", lambda: control_server.pending_release(call, "GET /", b"")),
        ("per arrival", lambda: control_server.arrival(call, turn)),
        ("per head", lambda: control_server.answered(call, HEAD)),
        ("per end", lambda: control_server.ended(call)),
    ):
        print(f"{name:33} {cost_us(hook, 20_000):7.2f} µs")


if __name__ == "__main__":
    main()
