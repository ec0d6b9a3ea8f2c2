"""Whatever comes in comes out byte for byte, of every engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from conformance.engines import ENGINES
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tapes.odd_spans import drawn_spans, odd_spans
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch

NUMBERS = count(1)


@pytest.fixture(scope="module", params=list(ENGINES))
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WholeStore]:
    """One for all examples, so that what one says is found again by the next."""
    if request.param == "postgres":
        request.getfixturevalue("server")
    opened = ENGINES[request.param].writer(tmp_path_factory.mktemp("store"))
    yield opened
    assert list(opened.verify()) == []
    opened.close()


@settings(max_examples=30, deadline=None)
@given(drawn=drawn_spans, traces=st.integers(1, 3))
def test_every_span_comes_back(store: WholeStore, drawn: list[Any], traces: int):
    comes_back(store, drawn, traces)


@pytest.mark.acceptance
@settings(max_examples=5000, deadline=None)
@given(drawn=drawn_spans, traces=st.integers(1, 3))
def test_every_one_of_thousands_of_spans_comes_back(store: WholeStore, drawn: list[Any], traces: int):
    comes_back(store, drawn, traces)


def comes_back(store: WholeStore, drawn: list[Any], traces: int) -> None:
    trace_ids = [next(NUMBERS).to_bytes(16, "big") for _ in range(traces)]
    spans = odd_spans(drawn, trace_ids)
    store.commit(Batch(spans[:2]))
    for span in spans[2:]:
        store.commit(Batch([span]))
    found = [one for trace_id in trace_ids for one in store.spans(trace_id)]
    assert sorted(found, key=lambda one: one.span_id) == sorted(spans, key=lambda one: one.span_id)
