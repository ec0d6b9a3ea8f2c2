"""Fields of runs: users, tags, attributes and counts. Lists also show input and result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.answers.spoken import CALL, QUESTION, RESULT, answer, request, talk
from support.starting.cli import CommandLine, store_run
from support.tapes.batches import span_of
from support.tapes.handmade import HandMade

from playhead_receiver.storage import Batch, open_store
from playhead_semconv import attributes as a

HOSTILE = "eve\x1b[31m\u202e"


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def call(trace: int, number: int, tokens: int, asked: str = "", reply: str = "", **at: Any):
    at |= {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_USAGE_INPUT_TOKENS: tokens - 1}
    at |= {a.GEN_AI_USAGE_OUTPUT_TOKENS: 1}
    if asked:
        at[a.GEN_AI_INPUT_MESSAGES] = said("user", asked)
    if reply:
        at[a.GEN_AI_OUTPUT_MESSAGES] = said("assistant", reply)
    return span_of(bytes([trace]) * 16, number, service="shop", **at)


@pytest.fixture
def shop(playhead: CommandLine) -> CommandLine:
    """A data folder with three runs of one agent."""
    store = open_store(playhead.data_dir)
    one = {"user.id": "anna", "tag.tags": ["beta", "big spender"], "plan": "pro"}
    store.commit(Batch([call(1, 1, 100, "Where is order 81?", "I will look.", **one)]))
    store.commit(Batch([call(1, 2, 50, "And order 82?", "Both are on the way.", **one)]))
    store.commit(Batch([call(2, 1, 30, "x" * 2000, "y", **{"user.id": "bob", "customer.tier": "gold"})]))
    store.commit(Batch([call(3, 1, 20, **{"enduser.id": HOSTILE})]))
    store.close()
    return playhead


def names(playhead: CommandLine, *query: str) -> list[str]:
    done = playhead("ls", *query)
    assert done.status == 0, done.err
    return sorted(line.split()[0] for line in done.lines[1:])


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("user:anna", ["shop-1"]),
        ('tag:"big spender" tag:beta', ["shop-1"]),
        ("tag:beta user:bob", []),
        ("tokens>=100", ["shop-1"]),
        ("tokens<150 tokens>20", ["shop-2"]),
        ("steps>=2", ["shop-1"]),
        ("steps<2", ["shop-2", "shop-3"]),
        ("customer.tier:gold", ["shop-2"]),
        (".plan:pro", ["shop-1"]),
        ("gen_ai.usage.input_tokens>=29", ["shop-1", "shop-2"]),
        ("customer.tier:gold order", []),
        (".plan:pro order", ["shop-1"]),
    ],
)
def test_runs_are_selected_by_a_field(shop: CommandLine, query: str, runs: list[str]):
    assert names(shop, query) == runs


def test_a_search_and_sums_have_the_same_fields(shop: CommandLine):
    assert shop("search", "order", "user:anna").lines[0].startswith("shop-1")
    assert shop("search", "order", ".plan:pro", "tokens>=100").lines[0].startswith("shop-1")
    assert shop("search", "order", ".plan:free").status == 1
    assert [line.split()[:2] for line in shop("stats", "--by", "tag", "user:anna").lines[1:3]] == [
        ["beta", "1"],
        ["big", "spender"],
    ]
    assert [line.split()[:2] for line in shop("stats", ".plan:pro", "--by", "user").lines[1:]] == [
        ["anna", "1"],
        ["all", "1"],
    ]


def test_a_list_as_json_has_input_and_result(shop: CommandLine):
    runs = {run["name"]: run for run in json.loads(shop("ls", "--json").out)["runs"]}
    first, second, third = (runs[f"shop-{number}"] for number in (1, 2, 3))
    assert (first["users"], first["tags"]) == (["anna"], ["beta", "big spender"])
    assert (first["input"], first["result"]) == ("Where is order 81?", "Both are on the way.")
    assert second["input"] == "x" * 499 + "…"
    assert (third["input"], third["result"], third["users"]) == ("", "", [HOSTILE])


def test_recorded_calls_have_input_and_result_and_other_steps_their_request(playhead: CommandLine):
    made = HandMade().start()
    talk(made, request(QUESTION), answer(content="I look."))
    talk(made, request(QUESTION, CALL, RESULT), answer(content="On its way."))
    store_run(playhead.data_dir, made.exit(0))
    store = open_store(playhead.data_dir)
    at = {a.HTTP_REQUEST_METHOD: "GET", a.URL_FULL: "https://a.b/c", a.HTTP_RESPONSE_STATUS_CODE: 204}
    store.commit(Batch([span_of(b"h" * 16, 1, service="plain", **at)]))
    store.close()
    runs = {run["name"]: run for run in json.loads(playhead("ls", "--json").out)["runs"]}
    assert (runs["plain-1"]["input"], runs["plain-1"]["result"]) == ("GET https://a.b/c", "204")
    assert runs["refund-1"]["input"] == "Where is order 81?\nAnd 82?"
    assert runs["refund-1"]["result"] == "On its way."


def test_hostile_values_are_harmless_where_they_are_shown(shop: CommandLine):
    for words in (("stats", "--by", "user"), ("ls", "--json"), ("ls", f".x{HOSTILE}:1")):
        done = shop(*words)
        assert not {"\x1b", "\u202e"} & set(done.out + done.err), words


def test_an_unknown_field_names_the_closest(shop: CommandLine):
    done = shop("ls", "usr:anna")
    assert done.status == 2 and "did you mean user?" in done.err
    nothing = shop("ls", "app.py:12")
    assert (nothing.status, nothing.lines) == (0, [])
    assert "app.py is the name of an attribute" in nothing.err
