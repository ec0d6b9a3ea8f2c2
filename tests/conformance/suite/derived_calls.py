"""What requests mean that no instrumentation named, put into what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conformance.suite.base import OnEngine, batch_of, recorded_run, run_of
from support.answers.spoken import CALL, QUESTION, answer, talk
from support.answers.spoken import request as question
from support.answers.wires import CLAUDE
from support.tapes.handmade import ROOT, TRACE, HandMade, span_id
from support.tapes.leftout import attributes
from support.whole_store import WholeStore

from playhead_core.facts import ExchangeId
from playhead_receiver.maintenance.call_metrics import SeenCall
from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls
from playhead_receiver.storage import Batch, Query
from playhead_receiver.storage.spans.whole_spans import span_of, whole_span
from playhead_receiver.storage.values.span_labels import AWAITED
from playhead_semconv import attributes as a

OPENAI = "POST https://api.openai.com/v1/chat/completions"
ASKED = b'{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}'
ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o-2024-08-06",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    ],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 20},
}

XAI_ASKED = b"\n\x0b\n\x07\n\x05Hello\x10\x01\x12\x03m-1"
"""A message in protobuf: a text of the user, and the model."""
XAI_ANSWER = b"\x12\x0a\x08\x03\x1a\x06\n\x02Hi\x10\x022\x03m-1J\x06\x08\x05\x10\x0c\x18\x11"
"""Why it ended and its text, the model, and 5, 12 and 17 tokens."""


OTHERS: dict[str, tuple[str, bytes, dict[str, Any], str, float | None]] = {
    "gemini.generate_content": (
        "POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
        b'{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}',
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
            ],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 20},
        },
        "gemini-2.5-flash",
        0.00035,
    ),
    "bedrock.converse": (
        "POST https://gateway.corp/model/amazon.nova-micro-v1%3A0/converse",
        b'{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}',
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1000, "outputTokens": 20},
        },
        "amazon.nova-micro-v1:0",
        0.0000378,
    ),
    "ollama.chat": (
        "POST http://localhost:11434/api/chat",
        b'{"model":"qwen-of-ours","messages":[{"role":"user","content":"Hello"}]}',
        {
            "model": "qwen-of-ours",
            "message": {"role": "assistant", "content": "Hi"},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 1000,
            "eval_count": 20,
        },
        "qwen-of-ours",
        None,
    ),
}
"""Wire → method and URL, body, answer, model, cost."""


def request(
    made: HandMade,
    key: str = OPENAI,
    body: bytes = ASKED,
    answer: Any = ANSWER,
    *,
    kept: bool = True,
    parent: int = ROOT,
    **fields: Any,
) -> int:
    """A request as a program makes it that has no SDK; the number of its span."""
    method, _, url = key.partition(" ")
    host = url.split("/")[2]
    attempt = made.begin(
        method,
        parent=parent,
        kind=3,
        **{a.HTTP_REQUEST_METHOD: method, a.URL_FULL: url, a.SERVER_ADDRESS: host},
    )
    chunks = (json.dumps(answer).encode(),)
    id = made.exchange(key, body, chunks, span=attempt, **fields) if kept else ExchangeId(9, "http", 9)
    made.finish(attempt, **{a.PLAYHEAD_EXCHANGE_ID: str(id)})
    return attempt


class DerivedCalls(OnEngine):
    def test_a_request_to_a_model_is_a_call_from_then_on(self, store: WholeStore):
        made = HandMade().start()
        asked = request(made)
        store.commit(batch_of(made.exit()))
        before = run_of(store, TRACE)
        assert (before.steps, before.models, before.input_tokens) == (1, [], 0)
        meanings = UnnamedCalls(store)
        assert meanings.derive_new() == 1
        for summed_up in (False, True):
            if summed_up:
                store.sum_up()
            after = run_of(store, TRACE)
            assert (after.steps, after.models, after.providers) == (1, ["gpt-4o-2024-08-06"], ["openai"])
            assert (after.input_tokens, after.output_tokens, after.cost_usd) == (1000, 20, 0.0027)
        (stored,) = store.spans(TRACE, [span_id(asked)])
        assert span_of(whole_span(store, stored)).name == "chat gpt-4o"
        said = attributes(whole_span(store, stored))
        assert said[a.PLAYHEAD_WIRE] == "openai.chat"
        assert said[a.GEN_AI_REQUEST_MODEL] == "gpt-4o"
        assert json.loads(said[a.GEN_AI_OUTPUT_MESSAGES])[0]["parts"][0]["content"] == "Hi"
        assert said[a.HTTP_REQUEST_METHOD] == "POST"
        assert [change.item.wire for change in store.changes(0) if hasattr(change.item, "wire")] == [
            "openai.chat" if one.span_id == stored.span_id else "" for one in store.spans(TRACE)
        ]
        assert list(store.verify()) == []

    @pytest.mark.parametrize("restarts", [False, True])
    def test_a_request_waits_for_its_bytes(self, store: WholeStore, restarts: bool):
        """A Collector has a queue for spans and one for facts; either may be late."""
        made = HandMade().start()
        request(made)
        made.exit()
        meanings = UnnamedCalls(store)
        store.commit(Batch(made.spans, (), {}))
        assert (meanings.derive_new(), meanings.derive_new()) == (0, 0)
        at = next(place for place, one in enumerate(made.facts) if one.name.endswith("exchange.end"))
        store.commit(Batch((), made.facts[:at], {}))
        if restarts:
            meanings = UnnamedCalls(store)
        meanings.derive_new()
        store.commit(Batch((), made.facts[at:], {}))
        assert (meanings.derive_new(), meanings.derive_new()) == (1, 0)
        run = run_of(store, TRACE)
        assert (run.steps, run.models, run.input_tokens) == (1, ["gpt-4o-2024-08-06"], 1000)
        assert UnnamedCalls(store).derive_new() == 0
        assert list(store.verify()) == []

    def test_a_call_failed_whose_answer_says_so(self, store: WholeStore):
        made = HandMade().start()
        asked = request(made, answer={"error": {"code": "overloaded", "message": "later"}})
        store.commit(batch_of(made.exit()))
        assert UnnamedCalls(store).derive_new() == 1
        assert run_of(store, TRACE).error_types == ["overloaded"]
        (stored,) = store.spans(TRACE, [span_id(asked)])
        status = span_of(whole_span(store, stored)).status
        assert (status.code, status.message) == (status.STATUS_CODE_ERROR, "later")

    @pytest.mark.parametrize(
        "method",
        [
            {a.RPC_SYSTEM_NAME: "grpc", a.RPC_METHOD: "xai_api.Chat/GetCompletion"},
            {a.RPC_SYSTEM: "grpc", a.RPC_SERVICE: "xai_api.Chat", a.RPC_METHOD: "GetCompletion"},
        ],
        ids=["", "by older conventions"],
    )
    def test_a_request_over_grpc_is_the_call_that_its_sdk_tells_of(
        self, store: WholeStore, method: dict[str, str]
    ):
        made = HandMade().start()
        outer = made.begin("chat.sample m-1", kind=3, **{a.GEN_AI_OPERATION_NAME: "chat"})
        asked = made.begin("xai", parent=outer, kind=3, **method)
        key = "api.x.ai:443/xai_api.Chat/GetCompletion"
        id = made.exchange(key, XAI_ASKED, (XAI_ANSWER,), span=asked, kind="grpc")
        made.finish(asked, **{a.PLAYHEAD_EXCHANGE_ID: str(id)})
        made.finish(outer, **{a.GEN_AI_REQUEST_MODEL: "m-1", a.GEN_AI_USAGE_INPUT_TOKENS: 12})
        store.commit(batch_of(made.exit()))
        counted: list[tuple[str, int, int]] = []

        def count(call: SeenCall, *, called: bool, bears: bool) -> None:
            assert called and bears
            counted.append((call.kind[-2], call.input, call.output))

        assert (UnnamedCalls(store, count).derive_new(), counted) == (1, [("m-1", 12, 5)])
        after = run_of(store, TRACE)
        assert (after.steps, after.input_tokens, after.output_tokens) == (1, 12, 5)
        (stored,) = store.spans(TRACE, [span_id(asked)])
        said = attributes(whole_span(store, stored))
        assert said[a.GEN_AI_RESPONSE_FINISH_REASONS] == ["stop"]

    @pytest.mark.parametrize("wire", sorted(OTHERS))
    def test_so_is_one_on_another_wire(self, store: WholeStore, wire: str):
        key, body, said, model, cost_usd = OTHERS[wire]
        made = HandMade().start()
        asked = request(made, key, body, said)
        store.commit(batch_of(made.exit()))
        assert UnnamedCalls(store).derive_new() == 1
        found = run_of(store, TRACE)
        assert (found.steps, found.models) == (1, [model])
        assert (found.input_tokens, found.output_tokens, found.cost_usd) == (1000, 20, cost_usd)
        (stored,) = store.spans(TRACE, [span_id(asked)])
        at = attributes(whole_span(store, stored))
        assert at[a.PLAYHEAD_WIRE] == wire
        assert json.loads(at[a.GEN_AI_OUTPUT_MESSAGES])[0]["parts"][0]["content"] == "Hi"

    def test_the_attempts_of_a_call_are_one_step(self, store: WholeStore):
        made, meanings = HandMade().start(), UnnamedCalls(store)
        refused = {"error": {"code": "rate_limit", "message": "Later"}}
        first = request(made, answer=refused, status=429)
        store.commit(batch_of(made))
        assert meanings.derive_new() == 1
        assert run_of(store, TRACE).steps == 1
        request(made)
        request(made, body=ASKED.replace(b"Hello", b"Bye"))
        store.commit(batch_of(made.exit()))
        assert meanings.derive_new() == 2
        found = run_of(store, TRACE)
        assert (found.steps, found.input_tokens) == (2, 2000)
        (row,) = [row for row in store.outline(TRACE) if row.span_id == span_id(first)]
        assert (row.label.resent, row.label.attempt, row.label.step) == (True, True, False)

    def test_it_is_looked_at_once_and_again_when_somebody_asks(self, store: WholeStore):
        made = HandMade().start()
        request(made)
        request(made, "GET https://shop/orders", b"")
        store.commit(batch_of(made))
        meanings = UnnamedCalls(store)
        assert (meanings.derive_new(), meanings.derive_new()) == (1, 0)
        position = store.position()
        assert meanings.derive_run(TRACE) == 0
        assert meanings.derive_run(TRACE, again=True) == 1
        assert store.position() == position
        assert run_of(store, TRACE).input_tokens == 1000
        request(made)
        store.commit(batch_of(made))
        assert meanings.derive_new() == 1
        assert run_of(store, TRACE).input_tokens == 2000
        store.sum_up()
        assert list(store.verify()) == []

    def test_how_far_it_has_looked_is_kept(self, store: WholeStore):
        made = HandMade().start()
        request(made)
        store.commit(batch_of(made))
        come, _, position = store.unexamined_spans()
        assert (list(come), position) == ([TRACE], store.position())
        assert UnnamedCalls(store).derive_new() == 1
        assert store.unexamined_spans() == ({}, {}, 0)
        request(made)
        store.commit(batch_of(made))
        store.mark_examined(1)  # another receiver was slower
        assert list(store.unexamined_spans()[0]) == [TRACE]
        assert UnnamedCalls(store).derive_new() == 1
        assert (UnnamedCalls(store).derive_new(), store.unexamined_spans()) == (0, ({}, {}, 0))
        assert run_of(store, TRACE).input_tokens == 2000

    def test_several_providers_and_forms(self, store: WholeStore):
        made = HandMade().start()
        claude = b'{"model":"claude-sonnet-5","max_tokens":9,"messages":[{"role":"user","content":"a"}]}'
        request(made, "POST https://api.anthropic.com/v1/messages", claude, CLAUDE)
        request(made, "POST https://api.groq.com/openai/v1/chat/completions")
        listed = {"data": [{"embedding": [0.5]}], "model": "e", "usage": {"prompt_tokens": 4}}
        request(made, "POST http://localhost:11434/v1/embeddings", b'{"model":"e","input":"a"}', listed)
        store.commit(batch_of(made))
        assert UnnamedCalls(store).derive_new() == 3
        run = run_of(store, TRACE)
        assert run.providers == ["anthropic", "groq"]  # whoever answers at localhost is not known
        assert run.models == ["claude-sonnet-5", "gpt-4o-2024-08-06", "e"]
        assert (run.input_tokens, run.steps) == (1011, 3)

    @pytest.mark.parametrize(
        ("key", "body"),
        [
            ("POST https://forms/survey/responses", b'{"answers": []}'),
            ("POST https://mail/v1/messages", b'{"to": "a", "messages": 3}'),
            ("POST https://api.openai.com/v1/chat/completions", b"not JSON"),
            ("POST https://api.openai.com/v1/chat/completions", b"[" * 5000),
            ("GET https://api.openai.com/v1/chat/completions", ASKED),
            ("POST https://api.openai.com/v1/files", ASKED),
        ],
    )
    def test_what_only_looks_like_one_stays_a_request(self, store: WholeStore, key: str, body: bytes):
        made = HandMade().start()
        request(made, key, body)
        store.commit(batch_of(made))
        before = run_of(store, TRACE)
        assert UnnamedCalls(store).derive_new() == 0
        after = run_of(store, TRACE)
        assert (after.steps, after.models, after.input_tokens) == (1, [], 0)
        assert after == before
        assert list(store.verify()) == []

    def test_what_an_instrumentation_named_stays_as_it_said(self, store: WholeStore):
        made = recorded_run()
        store.commit(batch_of(made))
        before = run_of(store, TRACE)
        assert UnnamedCalls(store).derive_new() == 0
        assert UnnamedCalls(store).derive_run(TRACE, again=True) == 0
        assert run_of(store, TRACE) == before

    def test_tools_that_a_call_of_before_calls_are_found_when_somebody_asks(self, store: WholeStore):
        """Its span refers to its exchange, and does not say what was called."""
        made = HandMade().start()
        talk(made, question(QUESTION), answer(tool_calls=CALL["tool_calls"]), told=False)
        store.commit(batch_of(made.exit()))
        meanings = UnnamedCalls(store)
        meanings.derive_new()
        assert run_of(store, TRACE).tools == []
        meanings.derive_run(TRACE, again=True)
        for summed_up in (False, True):
            if summed_up:
                store.sum_up()
            after = run_of(store, TRACE)
            assert (after.tools, after.steps) == (["search"], 1)
            assert [run.trace_id for run in store.runs(Query(tool="search"))] == [TRACE.hex()]

    def test_a_request_in_a_call_that_is_not_over_stays_a_part_of_it(self, store: WholeStore):
        made = HandMade().start()
        call = made.begin("chat gpt-4o", **{a.GEN_AI_OPERATION_NAME: "chat"})
        asked = request(made, parent=call)
        beside = made.begin("something else")
        store.commit(batch_of(made))
        assert UnnamedCalls(store).derive_new() == 0
        rows = {row.span_id: row for row in store.outline(TRACE)}
        assert rows[span_id(asked)].label.wire == ""
        inner = store.ancestry(TRACE, [span_id(asked), span_id(999)])
        assert [rows[row.span_id] for row in inner] == inner
        assert {row.span_id for row in inner} == {span_id(one) for one in (asked, call, ROOT)}
        assert span_id(beside) in rows

    def test_a_request_whose_facts_are_not_here_is_awaited(self, store: WholeStore):
        made = HandMade().start()
        request(made, kept=False)
        store.commit(batch_of(made))
        meanings = UnnamedCalls(store)
        assert (meanings.derive_new(), run_of(store, TRACE).steps) == (0, 1)
        (row,) = [row for row in store.outline(TRACE) if row.label.attempt]
        assert row.label.derived == AWAITED
        assert (meanings.left(), meanings.derive_new()) == (False, 0)

    def test_a_run_that_is_deleted_takes_its_meanings_along(self, store: WholeStore):
        made = HandMade().start()
        request(made)
        store.commit(batch_of(made.exit()))
        UnnamedCalls(store).derive_new()
        store.delete([TRACE])
        assert list(store.verify()) == []
        store.commit(batch_of(made))
        assert run_of(store, TRACE).models == []
