"""What an instrumentation adds to the slowest calls when many run at once.

``call``: 10,000 small calls of the real OpenAI SDK, spread over 64 threads. Each is answered after
20 ms, and its thread asks again at once: the interpreter is always busy, and what is added to one call
delays all others. ``stream``: 1,000 streams in one event loop, 20 chunks each, one every half second.
Each begins soon after the one before, for all at once would measure one long queue, and the last begins
before the first ends. The interpreter has time left there, if the machine is quick enough: what is late
was kept waiting, and throughput falls only where that time is used up.

The provider is a server on loopback in a process of its own, so that sockets compete for the event loop
as they do with a real one. A bare protocol of asyncio keeps up with 1,000 streams; the last line says
how late its writes were.

Variants, rounds and differences are those of ``latency.py``. After each batch the sink is asked what
came: of playhead, two spans for each call or stream and every fact up to the last one, else the
benchmark fails. Of the others it is printed how many spans did not come: their queue drops what is too
much for it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import ExitStack

from crowd_workloads import WORKLOADS
from latency import arguments, asked, report, serving, sink, turns, worker

SPANS = {"off": 0, "control": 0, "playhead": 2, "genai-openai": 1, "openinference": 1}
"""What a variant writes for one call; playhead: the call, and its attempt."""
TABLES = {
    "p50": "Median time of a call or stream, ms; added to off",
    "p99": "99 % take at most, ms; added to off",
    "throughput": "Calls or streams a second; added to off",
}

Figures = dict[str, dict[str, dict[str, list[float]]]]


def measure(rounds: int, variants: tuple[str, ...]) -> tuple[Figures, dict[str, int], float]:
    """Workload → variant → table → a figure a round; spans that did not come; how late answers were."""
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
    """Measure, print a table for each figure and what did not come, write the JSON."""
    given = arguments(__doc__, rounds=5)
    figures, lost, late_ms = measure(given.rounds, tuple(given.variants.split(",")))
    report(given, figures, TABLES)
    print("\nSpans that did not come: " + ", ".join(f"{one} {count:,}" for one, count in lost.items()))
    print(f"99 % of the provider's writes were at most {late_ms:.0f} ms late, in the worst batch")


if __name__ == "__main__":
    main()
