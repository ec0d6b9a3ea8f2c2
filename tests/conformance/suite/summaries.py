"""What is said of a run, made of its spans and its processes."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import msgspec
import pytest
from conformance.suite.base import CHAT, OnEngine, batch_of, living, recorded_run, run_of
from conformance.suite.custody import change
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import INSTANCE, ROOT, TRACE, HandMade, span_id

from playhead_core.facts import Fact
from playhead_core.otlp import set_attributes
from playhead_instrumentation.session.process_facts import own_identity
from playhead_receiver.storage import Batch, Query, RunStatus, RunSummary, Store, StoredSpan
from playhead_receiver.storage.runs.summary_fold import SpanFold
from playhead_semconv import attributes as a
from playhead_semconv import events as e

DEADLINE_S = 60.0


class Summaries(OnEngine):
    def test_summaries_of_earlier_versions_are_completed(self, store: Any):
        """An earlier version stored fewer fields, and not the words that new fields are found by."""
        traces = [bytes([number]) * 16 for number in range(1, 4)]
        at = {"user.id": "anna", "session.id": "s-1"}
        for trace in traces:
            store.commit(Batch([span_of(trace, number, **CHAT, **at) for number in (1, 2)]))
        while store.sum_up():
            pass
        whole = list(store.runs(Query()))
        for trace in traces[:2]:
            (kept,) = store._reader.one("SELECT summary FROM run WHERE trace_id = ?", (trace,))
            fields = msgspec.msgpack.decode(kept)
            older = msgspec.msgpack.encode(fields[: SpanFold.__struct_fields__.index("first_step")])
            change(store, "UPDATE run SET summary = ? WHERE trace_id = ?", older, trace)
            change(store, "DELETE FROM run_word WHERE trace_id = ? AND word = ?", trace, "anna")
        assert list(store.verify()) == []
        found = {run.trace_id: run for run in store.runs(Query())}
        assert [bool(found[run.trace_id].first_step) for run in whole].count(False) == 2
        assert all(found[run.trace_id].conversation == "s-1" for run in whole)
        assert len(list(store.runs(Query(words=(("user", "anna"),))))) == 1
        store._older_after = b""  # as in a process that has just opened the store
        while store.sum_up():
            pass
        assert list(store.runs(Query())) == list(store.runs(Query(words=(("user", "anna"),)))) == whole
        assert list(store.verify()) == []

    def test_a_run_is_summed_up(self, store: Store):
        made = recorded_run()
        before_ns = time.time_ns()
        store.commit(batch_of(made))
        said = run_of(store, TRACE)
        assert before_ns <= said.arrived_ns <= time.time_ns()
        assert said == RunSummary(
            name="refund-1",
            trace_id=TRACE.hex(),
            root_span_id=span_id(ROOT).hex(),
            agent="refund",
            status="success",
            started_ns=made.facts[0].time_ns,
            ended_ns=made.facts[-1].time_ns,
            steps=3,
            errors=0,
            input_tokens=1712,
            output_tokens=94,
            models=["gpt-4o"],
            instances=[INSTANCE.hex()],
            missing=[],
            spans=6,
            last_ns=made.facts[-1].time_ns,
            cost_usd=0.00522,
            tools=["search"],
            arrived_ns=said.arrived_ns,
            first_step=said.first_step,
            last_step=made.spans[-2].span_id.hex(),
            is_process=True,
        )
        assert said.first_step == made.spans[1].span_id.hex()

    def test_runs_are_named_after_their_agent_and_never_alike(self, store: Store):
        for number in range(1, 4):
            trace = bytes([number]) * 16
            store.commit(Batch([span_of(trace, 1, service="Order Desk")]))
        store.commit(Batch([span_of(b"u" * 16, 1, service="unknown_service:python")]))
        store.commit(Batch([span_of(b"v" * 16, 1, service="")]))
        store.commit(Batch([span_of(b"w" * 16, 1, service="", gen_ai__agent__name="gpt-4")]))
        names = {run.trace_id[:2]: (run.name, run.agent) for run in store.runs(Query())}
        assert names == {
            "01": ("order-desk-1", "Order Desk"),
            "02": ("order-desk-2", "Order Desk"),
            "03": ("order-desk-3", "Order Desk"),
            "75": ("run-1", "run"),
            "76": ("run-2", "run"),
            "77": ("gpt_4-1", "gpt-4"),
        }

    def test_a_run_is_named_after_its_agent_whichever_process_is_heard_first(self, store: Store):
        started = e.PLAYHEAD_PROCESS_START
        child = Fact(START_NS, 1, started, TRACE, span_id(2), instance=b"c" * 16, seq=0)
        child.attributes.update({a.PLAYHEAD_RUN_AGENT: "-c", a.PLAYHEAD_PROCESS_PARENT_AGENT: "refund"})
        parent = Fact(START_NS, 1, started, TRACE, span_id(1), instance=b"p" * 16, seq=0)
        parent.attributes[a.PLAYHEAD_RUN_AGENT] = "refund"
        for fact in (child, parent):
            store.commit(Batch([], [fact]))
        assert [(run.name, run.agent) for run in store.runs(Query())] == [("refund-1", "refund")]

    @pytest.mark.parametrize("at_once", [False, True])
    def test_a_run_is_named_after_the_service_in_which_it_began(self, store: Store, at_once: bool):
        facts: list[Fact] = []
        for number, agent in enumerate(("back", "front")):
            at_ns, instance = START_NS - number, bytes([number]) * 16
            facts.append(
                Fact(at_ns, 1, e.PLAYHEAD_EXCHANGE_REQUEST, TRACE, span_id(9), instance=instance, seq=0)
            )
            facts[-1].attributes.update(
                {a.PLAYHEAD_EXCHANGE_DIRECTION: "in", a.PLAYHEAD_RUN_AGENT: agent}
            )
        for some in [facts] if at_once else [[fact] for fact in facts]:
            store.commit(Batch([], some))
        assert [(run.name, run.agent) for run in store.runs(Query())] == [("front-1", "front")]
        assert store.resolve("front-1").trace_id == TRACE.hex()

    def test_a_run_that_goes_on_is_running_and_its_open_spans_count(self, store: Store):
        made = living()
        call = made.begin("chat gpt-4o", kind=3, gen_ai__operation__name="chat")
        store.commit(batch_of(made))
        run = run_of(store, TRACE)
        assert (run.status, run.ended_ns, run.steps) == ("running", None, 1)
        assert [fact.span_id for fact in store.pending(TRACE)] == [span_id(ROOT), span_id(call)]
        made.finish(call)
        store.commit(batch_of(made))
        assert [fact.span_id for fact in store.pending(TRACE)] == [span_id(ROOT)]
        assert run_of(store, TRACE).steps == 1

    def test_spans_whose_starts_an_ask_carries_are_pending_until_they_come(self, store: Store):
        made = living()
        call = made.begin("chat gpt-4o", kind=3, carried=True, gen_ai__operation__name="chat")
        attempt = made.begin("POST", parent=call, kind=3, carried=True)
        made.exchange(span=attempt)
        store.commit(batch_of(made))
        assert run_of(store, TRACE).steps == 1
        assert [
            (fact.name, fact.span_id, fact.attributes[a.PLAYHEAD_SPAN_PARENT])
            for fact in store.pending(TRACE)
        ] == [
            (e.PLAYHEAD_SPAN_START, span_id(ROOT), ""),
            (e.PLAYHEAD_SPAN_START, span_id(call), span_id(ROOT).hex()),
            (e.PLAYHEAD_SPAN_START, span_id(attempt), span_id(call).hex()),
        ]
        for number in (attempt, call):
            made.finish(number)
            store.commit(batch_of(made))
        assert [fact.span_id for fact in store.pending(TRACE)] == [span_id(ROOT)]

    def test_a_span_may_come_before_its_start(self, store: Store):
        made = recorded_run()
        store.commit(Batch(spans=made.spans))
        store.commit(Batch(facts=made.facts))
        assert list(store.pending(TRACE)) == []
        assert run_of(store, TRACE).steps == 3

    def test_a_run_whose_process_died_is_interrupted_and_shows_how_far_it_came(self, store: Store):
        made = HandMade().start()
        made.wait(1).chat()
        made.wait(1).begin("chat gpt-4o", kind=3, gen_ai__operation__name="chat")
        store.commit(batch_of(made))
        run = run_of(store, TRACE)
        assert (run.status, run.steps, run.root_span_id) == ("interrupted", 2, span_id(ROOT).hex())
        assert run.ended_ns == made.facts[-1].time_ns

    def test_a_run_whose_process_died_on_this_machine_is_interrupted_at_once(self, store: Store):
        own, other = own_identity(), f"{own_identity().rpartition('/')[0]}/1"
        statuses: list[str] = []
        for number, told in enumerate((own, other, "another-boot/1/1", ""), 1):
            id = bytes([0xD0 + number]) * 16  # of no other test: a reader remembers processes
            made = HandMade(id, id)
            made.at_ns = time.time_ns()
            said = {a.PLAYHEAD_PROCESS_IDENTITY: told} if told else {}
            beats = {a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 60_000}
            made.start(**{a.PLAYHEAD_PROCESS_PID: os.getpid(), **beats, **said})
            store.commit(batch_of(made))
            statuses.append(run_of(store, id).status)
        assert statuses == ["running", "interrupted", "running", "running"]
        [gone] = store.runs(Query(status="interrupted"))
        assert gone.trace_id == "d2" * 16 and gone.ended_ns is not None
        assert len(list(store.runs(Query(status="running")))) == 3

    def test_tools_that_a_model_calls_count_as_tools_of_the_run(self, store: Store):
        """Whether its span names them, or its messages call them; not only those that were executed."""
        chat = {"gen_ai__operation__name": "chat"}
        called = [{"role": "assistant", "parts": [{"type": "tool_call", "name": "refund"}]}]
        for number, said in enumerate(
            (
                {a.PLAYHEAD_TOOL_CALLED: ["search", "refund"]},
                {a.GEN_AI_OUTPUT_MESSAGES: json.dumps(called)},
                {a.GEN_AI_OUTPUT_MESSAGES: '"tool_call" is no JSON of messages'},
                {a.PLAYHEAD_TOOL_CALLED: ["x" * 10_000] * 1000},
            ),
            1,
        ):
            store.commit(Batch([span_of(bytes([number]) * 16, 1, **chat, **said)]))
        assert [run.trace_id[:2] for run in store.runs(Query(tool="refund"))] == ["01", "02"]
        assert [run.trace_id[:2] for run in store.runs(Query(tool="search"))] == ["01"]
        assert run_of(store, b"\x01" * 16).tools == ["search", "refund"]
        assert run_of(store, b"\x04" * 16).tools == ["x" * 200]

    def test_a_heartbeat_keeps_a_run_alive_for_three_intervals(self, store: Store):
        made = living(back_s=120.0, heartbeat_ms=60_000)
        store.commit(batch_of(made))
        assert run_of(store, TRACE).status == "running"
        made = living(back_s=181.0, heartbeat_ms=60_000, instance=b"2" * 16, trace=b"2" * 16)
        store.commit(batch_of(made))
        assert run_of(store, b"2" * 16).status == "interrupted"

    def test_a_clock_that_is_ahead_does_not_keep_the_dead_alive(self, store: Store):
        made = living(back_s=-3600.0, heartbeat_ms=1)
        store.commit(batch_of(made))
        deadline = time.monotonic() + DEADLINE_S
        while run_of(store, TRACE).status != "interrupted":
            assert time.monotonic() < deadline

    def test_an_interval_that_nobody_means_is_not_taken(self, store: Store):
        store.commit(batch_of(living(back_s=20.0, heartbeat_ms=(1 << 63) - 1)))
        assert run_of(store, TRACE).status == "interrupted"

    @pytest.mark.parametrize("how", ["exit status", "signal", "exception", "root span"])
    def test_a_run_fails_by_exit_status_exception_or_root_span(self, store: Store, how: str):
        made = HandMade().start()
        made.chat()
        made.finish(ROOT, error="ValueError: no" if how == "root span" else "")
        attributes: dict[str, object] = {
            a.PLAYHEAD_PROCESS_EXIT_CODE: {"exit status": 1, "signal": -15}.get(how, 0),
            a.PLAYHEAD_PROCESS_LAST_SEQ: len(made.facts),
        }
        if how == "exception":
            attributes[a.PLAYHEAD_ERROR_QUALNAME] = "ValueError"
        made.fact(e.PLAYHEAD_PROCESS_EXIT, attributes=attributes)
        store.commit(batch_of(made))
        assert run_of(store, TRACE).status == "failure"

    def test_errors_are_failed_steps_not_failed_attempts(self, store: Store):
        trace = b"t" * 16
        store.commit(
            Batch(
                [
                    span_of(trace, 1, name="run", error=True),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="chat"),
                    span_of(trace, 3, parent=2, error=True, http__request__method="POST"),
                    span_of(trace, 4, parent=2, http__request__method="POST"),
                    span_of(trace, 5, parent=1, error=True, gen_ai__operation__name="execute_tool"),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.steps, run.errors, run.status) == (2, 1, "failure")

    def test_a_request_outside_of_any_call_is_a_step(self, store: Store):
        trace = b"t" * 16
        asked = {"http__request__method": "GET"}
        store.commit(
            Batch(
                [
                    span_of(trace, 1, name="run"),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="invoke_agent"),
                    span_of(trace, 3, parent=2, **asked),
                    span_of(trace, 4, parent=3, **asked),
                    span_of(trace, 5, parent=1, error=True, **asked),
                    span_of(trace, 6, parent=1, gen_ai__operation__name="execute_tool"),
                    span_of(trace, 7, parent=6, error=True, **asked),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.steps, run.errors) == (3, 1)

    def test_tokens_that_parents_sum_up_are_not_counted_twice(self, store: Store):
        trace = b"t" * 16
        used = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        sums = {"gen_ai__usage__input_tokens": 200, "gen_ai__usage__output_tokens": 20}
        models = {"gen_ai__request__model": "asked", "gen_ai__response__model": "answered"}
        store.commit(
            Batch(
                [
                    span_of(trace, 1, gen_ai__operation__name="invoke_agent", **sums),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="chat", **used, **models),
                    span_of(trace, 3, parent=1, name="chain"),
                    span_of(trace, 4, parent=3, gen_ai__operation__name="chat", **used),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.input_tokens, run.output_tokens, run.steps) == (200, 20, 2)
        assert run.models == ["answered"]

    def test_a_trace_without_a_tape_is_a_run_of_its_service(self, store: Store):
        child = span_of(b"f" * 16, 2, parent=1, service="shop")
        store.commit(Batch([child]))
        run = run_of(store, b"f" * 16)
        assert (run.name, run.agent, run.status) == ("shop-1", "shop", "running")
        assert (run.root_span_id, run.ended_ns, run.instances) == ("", None, [])
        root = span_of(b"f" * 16, 1, service="shop")
        store.commit(Batch([root]))
        run = run_of(store, b"f" * 16)
        assert (run.status, run.root_span_id) == ("success", root.span_id.hex())

    def test_the_root_may_have_a_parent_in_another_process(self, store: Store):
        local = span_of(b"f" * 16, 2, parent=9, flags=0x300)
        inner = span_of(b"f" * 16, 3, parent=2, error=True, flags=0x100)
        store.commit(Batch([inner, local]))
        run = run_of(store, b"f" * 16)
        assert (run.status, run.root_span_id, run.errors) == ("success", local.span_id.hex(), 1)

    @pytest.mark.parametrize(("failed", "status"), [(False, "success"), (True, "failure")])
    def test_a_request_whose_parent_never_arrives_has_its_own_status(
        self, store: Store, failed: bool, status: RunStatus
    ):
        trace = b"f" * 16
        store.commit(Batch([span_of(trace, 2, parent=9, kind=2, error=failed)]))
        assert run_of(store, trace).status == status
        assert [run.status for run in store.runs(Query(status=status))] == [status]

    def test_a_failed_request_counts_although_its_caller_is_in_the_store(self, store: Store):
        """A root that leaves its status unset reports nothing; OK, or a request of its own, does."""
        asks = {"http__request__method": "GET"}

        def spans_of(trace: bytes, **root: Any) -> list[StoredSpan]:
            return [
                span_of(trace, 1, **root),
                span_of(trace, 2, parent=1, error=True, **asks),
                span_of(trace, 3, parent=2, kind=2, error=True, service="refund", **asks),
                span_of(trace, 4, parent=3, error=True, service="refund", **asks),
            ]

        roots: list[tuple[dict[str, Any], RunStatus]] = [
            ({"kind": 1}, "failure"),
            ({"kind": 1, "is_ok": True}, "success"),
            ({"kind": 2}, "success"),
        ]
        for number, (root, status) in enumerate(roots, 1):
            spans = spans_of(bytes([number]) * 16, **root)
            for span in reversed(spans) if number % 2 else spans:
                store.commit(Batch([span]))
            run = run_of(store, bytes([number]) * 16)
            assert (run.status, run.steps, run.errors) == (status, 2, 3)

    def test_a_service_that_recovers_inside_answers_its_request(self, store: Store):
        trace = b"f" * 16
        spans = [
            span_of(trace, 1, kind=1),
            span_of(trace, 2, parent=1, kind=2),
            span_of(trace, 3, parent=2, kind=1),
            *(span_of(trace, number, parent=3, kind=2, error=True) for number in (4, 5)),
        ]
        store.commit(Batch(spans))
        assert run_of(store, trace).status == "success"

    def test_a_child_process_is_an_instance_of_the_run_that_started_it(self, store: Store):
        made = recorded_run()
        store.commit(batch_of(made))
        child = HandMade(instance=b"c" * 16)
        child.at_ns = made.at_ns
        child.fact(
            e.PLAYHEAD_PROCESS_START,
            span=0xB0,
            attributes={a.PLAYHEAD_RUN_AGENT: "helper"},
        )
        child.begin("run helper.py", number=0xB0, parent=1)
        child.fact(e.PLAYHEAD_PROCESS_EXIT, attributes={a.PLAYHEAD_PROCESS_EXIT_CODE: 3})
        store.commit(batch_of(child))
        run = run_of(store, TRACE)
        assert run.instances == [INSTANCE.hex(), (b"c" * 16).hex()]
        assert (run.name, run.status, run.root_span_id) == ("refund-1", "success", span_id(ROOT).hex())

    def test_a_run_goes_on_while_its_first_process_lives(self, store: Store):
        """A child may deliver all that it did before its parent delivers the root of the run."""
        parent = living()
        facts = [fact for fact in parent.facts if fact.name != e.PLAYHEAD_SPAN_START]
        child = HandMade(instance=b"c" * 16)
        child.at_ns = parent.at_ns + 1
        child.fact(e.PLAYHEAD_PROCESS_START, span=0xB0)
        child.fact(e.PLAYHEAD_PROCESS_EXIT, attributes={a.PLAYHEAD_PROCESS_EXIT_CODE: 0})
        root = span_of(TRACE, 0xB0, parent=9, flags=0x300)
        store.commit(Batch(spans=[root], facts=[*facts, *child.facts]))
        run = run_of(store, TRACE)
        assert run.instances == [INSTANCE.hex(), (b"c" * 16).hex()]
        assert run.status == "running"
        parent.exit()
        store.commit(batch_of(parent))
        assert run_of(store, TRACE).status == "success"

    def test_each_kind_of_token_has_its_price(self, store: Store):
        used: dict[str, Any] = {
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "claude-sonnet-4-5",
            "gen_ai.usage.input_tokens": 50_000,
            "gen_ai.usage.output_tokens": 1_000,
            "gen_ai.usage.cache_read.input_tokens": 40_000,
            "gen_ai.usage.cache_write.input_tokens": 8_000,
            "gen_ai.usage.reasoning.output_tokens": 600,
        }
        unknown = {**used, "gen_ai.request.model": "home-grown-1"}
        trace, other = b"1" * 16, b"2" * 16
        store.commit(Batch([span_of(trace, 1, **used), span_of(trace, 2, **unknown)]))
        store.commit(Batch([span_of(other, 1, **unknown)]))
        priced, unpriced = run_of(store, trace), run_of(store, other)
        # 2,000 at $ 3 a million, 40,000 at 0.30, 8,000 at 3.75, 1,000 at 15
        assert (priced.cost_usd, priced.unpriced) == (0.063, ["home-grown-1"])
        assert (unpriced.cost_usd, unpriced.unpriced) == (None, ["home-grown-1"])
        assert (priced.cached_tokens, priced.cache_write_tokens) == (80_000, 16_000)
        assert (priced.input_tokens, priced.reasoning_tokens) == (100_000, 1_200)

    def test_version_and_environment_are_those_of_the_resource(self, store: Store):
        for number, environment in enumerate(("prod", "staging"), 1):
            envelope = ResourceSpans.FromString(span_of(bytes([number]) * 16, 1).otlp)
            more = {a.SERVICE_VERSION: f"2.{number}", a.DEPLOYMENT_ENVIRONMENT_NAME: environment}
            set_attributes(envelope.resource.attributes, more)
            span = StoredSpan(bytes([number]) * 16, b"", envelope.SerializeToString())
            store.commit(Batch([span]))
        (run,) = store.runs(Query(environment="staging"))
        assert (run.trace_id[:2], run.version, run.environment) == ("02", "2.2", "staging")
        assert [run.environment for run in store.runs(Query(version="2.1"))] == ["prod"]
