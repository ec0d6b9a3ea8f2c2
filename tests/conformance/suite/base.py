"""What every part of the suite is made of: an engine at a place of its own, and batches to commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance.engines import ENGINES
from support.tapes.handmade import INSTANCE, TRACE, HandMade

from playhead_core.facts import Fact
from playhead_receiver.storage import Batch, RunSummary, Store
from playhead_semconv import attributes as a

CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


def usage(tokens: int) -> dict[str, int]:
    return {"gen_ai__usage__input_tokens": 1000 * tokens, "gen_ai__usage__output_tokens": 10 * tokens}


def recorded_run() -> HandMade:
    made = HandMade().start()
    made.wait(0.5).chat(chunks=(b"data: a\n\n", b"data: b\n\n"))
    made.wait(0.5).tool("search", '{"order": 81}')
    made.wait(0.5).chat(tokens=(900, 30))
    return made.exit()


def batch_of(made: HandMade) -> Batch:
    return Batch(spans=made.spans, facts=made.facts)


def numbers(facts: Iterator[Fact]) -> list[int]:
    return [fact.seq for fact in facts]


def run_of(store: Store, trace_id: bytes) -> RunSummary:
    return store.resolve(trace_id.hex())


def living(
    back_s: float = 0.0,
    heartbeat_ms: int = 60_000,
    instance: bytes = INSTANCE,
    trace: bytes = TRACE,
) -> HandMade:
    made = HandMade(instance=instance, trace_id=trace)
    made.at_ns = time.time_ns() - int(back_s * 1e9)
    return made.start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: heartbeat_ms})


class OnEngine:
    """``engine``: a name in `conformance.engines.ENGINES`."""

    engine: str

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "data"

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        opened = ENGINES[self.engine].writer(place)
        yield opened
        opened.close()

    @pytest.fixture
    def reader(self, place: Path) -> Iterator[Callable[[], Store]]:
        opened: list[Store] = []

        def open_reader() -> Store:
            opened.append(ENGINES[self.engine].reader(place))
            return opened[-1]

        yield open_reader
        for one in opened:
            one.close()
