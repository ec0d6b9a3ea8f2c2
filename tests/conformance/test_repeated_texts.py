"""What several runs say lies in the store once; each of them is found by it, on every engine."""

from __future__ import annotations

import json

import pytest
from support.tapes.batches import span_of
from support.whole_store import WholeStore

from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_hits, ask_runs
from playhead_receiver.storage import Batch, Query

NAMES = ("anna", "bert", "carl", "dora", "emma")
SAID = [f"Where is {name}? " + "It was raining all day.\n" * 8 for name in NAMES]


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def say(store: WholeStore, number: int, *said: str, service: str = "desk", span: int = 1) -> None:
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": one}]} for one in said])
    chat = {"gen_ai__operation__name": "chat", "gen_ai__input__messages": text}
    store.commit(Batch([span_of(trace(number), span, service=service, **chat)]))


def indexed(store: WholeStore) -> None:
    while store.index():
        pass


def runs(store: WholeStore, text: str, **wanted: object) -> list[int]:
    asked = read_language(text, Query(mode=None, **wanted))  # type: ignore[arg-type]
    return sorted(int(run.trace_id[:2], 16) for run in ask_runs(store, asked))


def hits(store: WholeStore, text: str) -> list[tuple[int, int]]:
    asked = read_language(text, Query(mode=None))
    return sorted((int(hit.trace_id[:2], 16), int(hit.span_id, 16)) for _, hit in ask_hits(store, asked))


def test_all_runs_that_say_a_thing_are_found_by_it(store: WholeStore):
    for number in (1, 2, 3):
        say(store, number, SAID[0], SAID[number], span=number)
    say(store, 4, SAID[2], service="other")
    indexed(store)
    assert runs(store, "anna") == [1, 2, 3]
    assert runs(store, "carl") == [2, 4]
    assert runs(store, "carl agent:other") == [4]
    assert runs(store, "raining dora") == [3]
    assert runs(store, "emil") == []
    assert hits(store, "anna") == [(1, 1)]  # who said that: the first
    assert hits(store, "carl agent:other") == [(4, 1)]


def test_a_talk_of_one_trace_for_each_turn_is_found_by_its_first_words(store: WholeStore):
    for turn in range(1, 5):
        say(store, turn, *SAID[:turn], span=turn)
    indexed(store)
    assert runs(store, "anna") == [1, 2, 3, 4]
    assert runs(store, "carl") == [3, 4]
    assert runs(store, "anna", limit=2) == [3, 4]


def test_calls_of_a_turn_go_on_from_each_other(store: WholeStore):
    """The next turn rests on what the last call of the turn before it said."""
    for call in range(1, 6):
        say(store, 1 + call // 3, *SAID[:call], span=call)
    indexed(store)
    assert runs(store, "anna") == runs(store, "bert") == [1, 2]
    assert runs(store, "emma") == [2]


def test_who_says_it_still_is_found_when_the_first_is_deleted(store: WholeStore):
    for number in (1, 2, 3):
        say(store, number, *SAID[:2], span=number)
    indexed(store)
    store.delete([trace(1)])
    assert runs(store, "bert") == [2, 3]
    store.delete([trace(3)])
    assert runs(store, "bert") == [2]
    store.delete([trace(2)])
    assert runs(store, "bert") == []


def test_a_run_is_not_crowded_out_by_others_that_say_the_same_later(
    store: WholeStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.queries.matching_runs.RUNS", 3)
    say(store, 1, "a small umbrella", service="early")
    for number in range(2, 12):
        say(store, number, f"an umbrella of {number}")
    indexed(store)
    assert runs(store, "umbrella") == [9, 10, 11]
    assert runs(store, "umbrella agent:early") == [1]
    assert hits(store, "umbrella agent:early") == [(1, 1)]
