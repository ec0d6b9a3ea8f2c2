"""What an instrumentation adds to the slowest calls when many run at once.

``call``: 10,000 small calls of the real OpenAI SDK, spread over 64 threads. Each is answered after 20
ms, and its thread makes the next call immediately. The interpreter is always busy, so what is added to
one call delays all others. ``stream``: 1,000 streams in one event loop, with 20 chunks each, one every
half second. Their starts are staggered, because a simultaneous start would measure one long queue; the
last starts before the first ends. If the machine is fast enough, the interpreter has idle time there: a
late chunk was kept waiting, and throughput falls only where that idle time is used up.

The provider is a server on loopback in a process of its own, so that sockets compete for the event loop
as they do with a real one. A bare asyncio protocol keeps up with 1,000 streams; the last line of output
says how late its writes were.

Variants, rounds and differences are those of ``latency.py``. After each batch the sink is asked what it
received: from playhead, two spans for each call or stream and every fact up to the last one, otherwise
the benchmark fails. For the others, the number of missing spans is printed: their queues drop what
exceeds their capacity.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack

from crowd_workloads import WORKLOADS
from latency import VARIANTS, arguments, asked, report, serving, sink, turns, worker

SPANS = {"off": 0, "control": 0, "playhead": 2, "genai-openai": 1, "openinference": 1}
"""Spans that a variant writes per call; for playhead, the call and its attempt."""
TABLES = {
    "p50": "Median time of a call or stream, ms; added to off",
    "p99": "99 % take at most, ms; added to off",
    "throughput": "Calls or streams a second; added to off",
}

Figures = dict[str, dict[str, dict[str, list[float]]]]


def measure(rounds: int, variants: tuple[str, ...]) -> tuple[Figures, dict[str, int], float]:
    """Workload → variant → table → one figure per round; missing spans; lateness of answers in ms."""
    figures: Figures = {
        name: {variant: {clock: [] for clock in TABLES} for variant in variants} for name in WORKLOADS
    }
    lost = dict.fromkeys(variants, 0)
    late_ms = 0.0
    with ExitStack() as stack:
        endpoint = stack.enter_context(sink("--records"))
        provider = stack.enter_context(serving("crowd_provider.py"))
        os.environ |= {"OPENAI_BASE_URL": f"{provider}/v1", "OPENAI_API_KEY": "bench"}
        state = stack.enter_context(tempfile.TemporaryDirectory())
        workers = [
            stack.enter_context(worker(one, endpoint, state, "crowd_workloads")) for one in variants
        ]
        before = asked(f"{endpoint}/counts")["spans"]
        asked(f"{provider}/late")
        for name, one in turns(rounds, WORKLOADS, workers):
            answer, (_, count, _) = one.ask(name), WORKLOADS[name]
            cuts = statistics.quantiles(answer["ns"], n=100)
            found = figures[name][one.variant]
            found["p50"].append(cuts[49] / 1e6)
            found["p99"].append(cuts[98] / 1e6)
            found["throughput"].append(count / answer["whole_ns"] * 1e9)
            late_ms = max(late_ms, asked(f"{provider}/late")["p99"])
            counts = asked(f"{endpoint}/counts")
            lost[one.variant] += count * SPANS[one.variant] - int(counts["spans"] - before)
            before = counts["spans"]
        if "playhead" in variants:
            assert counts["facts"] > 0 and not counts["missing"], f"facts are missing: {counts}"
            assert not lost["playhead"], f"{lost['playhead']} spans are missing"
    return figures, lost, late_ms


def main() -> None:
    """Measure, print a table for each figure and the missing spans, write the JSON."""
    given = arguments(__doc__, rounds=5)
    figures, lost, late_ms = measure(
        given.rounds, tuple(given.variants.split(",")) if given.variants else VARIANTS
    )
    report(given, figures, TABLES)
    print("\nSpans that did not come: " + ", ".join(f"{one} {count:,}" for one, count in lost.items()))
    print(f"99 % of the provider's writes were at most {late_ms:.0f} ms late, in the worst batch")


if __name__ == "__main__":
    main()
