"""The example agents, recorded: what a recording by way of other programs has to be equal to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.home import Home
from support.starting.running import ended, until

from playhead_cli.demo.provider import Provider
from playhead_core.otlp import attributes_of
from playhead_receiver.storage import Query, Store
from playhead_receiver.storage.spans.whole_spans import Deriver, span_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTS = ("weather", "research", "refund")
PATIENCE_S = 240.0
PAYLOADS = (a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES)


def record(home: Home) -> None:
    """Record the three agents, at the same time, until they end."""
    started = [home.start("record", EXAMPLES / f"{name}_agent.py") for name in AGENTS]
    for agent in started:
        said = agent.communicate(timeout=PATIENCE_S)
        assert agent.returncode == 0, said


def home_for(folder: Path, provider: Provider, endpoint: str) -> Home:
    """A home whose agents send to ``endpoint``."""
    folder.mkdir(exist_ok=True)
    return Home(folder, provider.environment | {"PLAYHEAD_ENDPOINT": endpoint})


def spans_in(store: Store, trace_id: str) -> list[ResourceSpans]:
    """The spans of a trace with what the receiver derives."""
    deriver = Deriver(store)
    return [deriver.whole(one) for one in store.spans(bytes.fromhex(trace_id))]


def shape(store: Store) -> dict[str, Any]:
    """By agent: spans by name, with tokens and whether messages are there; and facts of its tapes."""
    found: dict[str, Any] = {}
    for run in store.runs(Query(mode=None)):
        names: Counter[Any] = Counter()
        for envelope in spans_in(store, run.trace_id):
            span = span_of(envelope)
            said = attributes_of(span.attributes)
            messages = tuple(name in said for name in PAYLOADS)
            names[span.name, said.get(a.GEN_AI_USAGE_INPUT_TOKENS), messages] += 1
        instances = [bytes.fromhex(one) for one in run.instances]
        if all(ended(store, one) for one in instances):
            tapes = [store.tape(one) for one in instances]
            facts = sorted([fact.seq for fact in tape.facts()] for tape in tapes)
            assert all(
                numbers == list(range(numbers[0], numbers[0] + len(numbers))) for numbers in facts
            )
            # Into how many parts a response was cut depends on the network.
            kept = (fact for tape in tapes for fact in tape.facts() if fact.exchange)
            exchanges = Counter(fact.name for fact in kept if fact.name != e.PLAYHEAD_EXCHANGE_DATA)
            found[run.name.rpartition("-")[0]] = (names, exchanges)
    return found


def arrived(store: Store, wanted: dict[str, Any], timeout_s: float = 120) -> None:
    """Wait until a store has the same runs as ``wanted``."""

    def same() -> bool:
        found = shape(store)
        return found.keys() == wanted.keys() and all(found[name] == wanted[name] for name in wanted)

    try:
        until(same, "everything has arrived", timeout_s)
    except AssertionError:
        found = shape(store)
        for name, whole in wanted.items():
            for there, due in zip(found.get(name, (Counter(),) * 2), whole, strict=True):
                print(name, "missing:", due - there, "in addition:", there - due)
        raise
