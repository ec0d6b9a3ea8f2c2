"""Runs in lists: filtered, sorted, paged, and found by what a user types."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from conformance.suite.base import CHAT, OnEngine, batch_of, recorded_run, usage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import ROOT, TRACE, HandMade, span_id
from support.whole_store import WholeStore

from playhead_core.errors import RunAmbiguous, RunUnknown, UsageError
from playhead_core.facts import Fact
from playhead_core.otlp import set_attributes
from playhead_receiver.queries.language import read_language
from playhead_receiver.storage import (
    Batch,
    Query,
    RunSummary,
    Sort,
    Store,
    StoredSpan,
    page_cursor,
)
from playhead_receiver.storage.runs.listing import measure_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def with_resource(span: StoredSpan, **attributes: Any) -> StoredSpan:
    envelope = ResourceSpans.FromString(span.otlp)
    set_attributes(envelope.resource.attributes, attributes)
    return StoredSpan(span.trace_id, span.span_id, envelope.SerializeToString())


def with_event(span: StoredSpan, **attributes: Any) -> StoredSpan:
    envelope = ResourceSpans.FromString(span.otlp)
    set_attributes(envelope.scope_spans[0].spans[0].events.add(name="e").attributes, attributes)
    return StoredSpan(span.trace_id, span.span_id, envelope.SerializeToString())


class Listing(OnEngine):
    def test_forks_are_listed_by_their_origin(self, store: Store):
        made = HandMade().start()
        store.commit(batch_of(made.exit()))
        trace = made.trace_id.hex()
        for number, mode in enumerate(("fork", "resume", "replay"), 1):
            at = {a.PLAYHEAD_RUN_MODE: mode, a.PLAYHEAD_RUN_ORIGIN: f"{trace}-{span_id(ROOT).hex()}"}
            id = bytes([number]) * 16
            start = Fact(1, 1, e.PLAYHEAD_PROCESS_START, id, attributes=at, instance=id, seq=0)
            store.commit(Batch(facts=[start]))
        found = list(store.runs(Query(origin=trace)))
        assert sorted(run.mode for run in found) == ["fork", "resume"]
        assert len(list(store.runs(Query(origin=trace, mode=None)))) == 3
        assert list(store.runs(Query(origin="00" + trace[2:]))) == []

    def test_replays_are_listed_apart_and_name_their_origin(self, store: Store):
        made = recorded_run()
        store.commit(batch_of(made))
        origin = f"{TRACE.hex()}-{span_id(ROOT).hex()}"
        replay = HandMade(instance=b"p" * 16, trace_id=b"p" * 16)
        replay.start(**{a.PLAYHEAD_RUN_MODE: "replay", a.PLAYHEAD_RUN_ORIGIN: origin})
        store.commit(Batch(spans=replay.spans, facts=replay.facts))
        assert [run.trace_id for run in store.runs(Query())] == [TRACE.hex()]
        (listed,) = store.runs(Query(mode="replay"))
        assert (listed.trace_id, listed.mode, listed.origin) == ((b"p" * 16).hex(), "replay", origin)
        assert len(list(store.runs(Query(mode=None)))) == 2

    @pytest.mark.parametrize("summed_up", [False, True])
    def test_a_run_is_found_by_each_of_its_conversations(self, store: WholeStore, summed_up: bool):
        """Also by the session of a span of our conventions; whichever spans come first."""
        trace, talk = b"c" * 16, a.GEN_AI_CONVERSATION_ID
        for spans in (
            [span_of(trace, 5, **CHAT, **{talk: "c-b", "session.id": "s-1"})],
            [span_of(trace, number, **CHAT, **{talk: f"c-{number}"}) for number in (3, 4)],
            [span_of(trace, 1), span_of(b"d" * 16, 1, **{talk: "c-b"})],
        ):
            store.commit(Batch(spans))
            if summed_up:
                store.sum_up()
        for word in ("c-b", "s-1", "c-3", "c-4"):
            found = [run.trace_id[:2] for run in store.runs(Query(conversation=word))]
            assert found == (["63", "64"] if word == "c-b" else ["63"]), word
        assert list(store.runs(Query(conversation="c-5"))) == []
        run = store.resolve(trace.hex())
        assert (run.conversation, run.conversations) == ("c-b", ["c-b", "c-3", "c-4", "s-1"])
        store.delete([trace])
        assert list(store.runs(Query(conversation="s-1"))) == []

    @pytest.mark.parametrize("summed_up", [False, True])
    def test_a_run_is_found_by_its_users_tags_prompts_and_releases(
        self, store: WholeStore, summed_up: bool
    ):
        """All of the run, under the names of all conventions, of spans and of resources."""
        trace = b"c" * 16
        for spans in (
            [span_of(trace, 5, **{"user.id": "anna", "tag.tags": ["beta", "big spender"]})],
            [span_of(trace, 4, **{"enduser.id": "bob", "langsmith.span.tags": "beta, eu"})],
            [span_of(trace, 3, **{a.GEN_AI_PROMPT_NAME: "greet", a.GEN_AI_PROMPT_VERSION: 3})],
            [span_of(trace, 2, **{"langfuse.observation.prompt.name": "close"})],
            [with_resource(span_of(trace, 1), **{a.SERVICE_VERSION: "1.2", "user.id": "carl"})],
            [with_resource(span_of(trace, 6), **{"langfuse.release": "r9"})],
            [span_of(b"d" * 16, 1, **{"langfuse.user.id": "anna", "langfuse.session.id": "s-1"})],
        ):
            store.commit(Batch(spans))
            if summed_up:
                store.sum_up()

        def found(*words: tuple[str, str], **conditions: Any) -> set[str]:
            return {run.trace_id[:2] for run in store.runs(Query(words=words, **conditions))}

        assert found(("user", "anna")) == {"63", "64"}
        for word in (("user", "bob"), ("user", "carl"), ("tag", "beta"), ("tag", "big spender")):
            assert found(word) == {"63"}, word
        for word in (("tag", "eu"), ("prompt", "greet"), ("prompt", "close"), ("prompt_version", "3")):
            assert found(word) == {"63"}, word
        assert found(("release", "1.2"), ("release", "r9"), ("user", "anna")) == {"63"}
        assert found(("tag", "beta"), ("user", "unknown")) == found(("tag", "bet")) == set()
        assert found(("user", "anna"), conversation="s-1") == {"64"}
        assert found(("user", "anna"), sort="tokens", ascending=True) == {"63", "64"}
        run = store.resolve(trace.hex())
        assert (run.users, run.tags) == (["anna", "bob", "carl"], ["beta", "big spender", "eu"])
        assert (run.prompts, run.prompt_versions, run.releases) == (
            ["close", "greet"],
            ["3"],
            ["1.2", "r9"],
        )
        assert list(store.verify()) == []

    def test_runs_are_found_by_tokens_and_steps(self, store: WholeStore):
        for number in range(1, 5):
            trace = bytes([number]) * 16
            calls = range(10, 10 + number)
            store.commit(Batch([span_of(trace, call, **CHAT, **usage(number)) for call in calls]))

        def found(**bounds: int) -> list[str]:
            return sorted(run.trace_id[:2] for run in store.runs(Query(**bounds)))

        for _ in range(2):
            assert found(tokens_from=4040) == ["02", "03", "04"]
            assert found(tokens_from=4041, tokens_below=10_000) == ["03"]
            assert found(tokens_below=1010) == []
            assert found(steps_from=3) == found(steps_from=2, tokens_from=9090) == ["03", "04"]
            assert found(steps_below=2) == ["01"]
            store.sum_up()

    @pytest.mark.parametrize("indexed", [False, True])
    def test_runs_are_found_by_any_attribute(self, store: WholeStore, indexed: bool):
        """Of spans, resources and events, in any convention, and in metadata."""
        many = {"list": ["red", 7], "size": 12, "ok": True, "text": "9", "long": "x" * 1000}
        event = span_of(
            b"b" * 16, 1, **{"size": 2.5, "llm.model_name": "m", "openinference.span.kind": "LLM"}
        )
        store.commit(Batch([span_of(b"a" * 16, 1), span_of(b"a" * 16, 2, **many)]))
        store.commit(Batch([with_event(event, **{"exception.type": "KeyError"})]))
        store.commit(Batch([with_resource(span_of(b"c" * 16, 1), **{"cloud.region": "eu"})]))
        for trace, at in (
            (b"d", {"metadata": '{"plan": "pro", "seats": 3}'}),
            (b"e", {"langfuse.trace.metadata.plan": "pro"}),
            (b"f", {"langsmith.metadata.plan": "free"}),
        ):
            store.commit(Batch([span_of(trace * 16, 1, **at)]))
        while indexed and store.index():
            pass

        def found(*conditions: str, **others: Any) -> str:
            parsed = read_language(" ".join(conditions), Query(**others))
            return "".join(
                sorted(bytes.fromhex(run.trace_id)[:1].decode() for run in store.runs(parsed.query))
            )

        for condition, runs in {
            "cloud.region:eu": "c",
            ".list:red": "a",
            ".list:7": "a",
            ".size:12": "a",
            ".size>=2.5": "ab",
            ".size>2.5": "a",
            ".size<12": "b",
            ".size<=12": "ab",
            ".ok:true": "a",
            ".ok:1": "",
            ".text:9": "a",
            ".text>8": "a",
            f".long:{'x' * 1000}": "a",
            ".long:xxx": "",
            "gen_ai.request.model:m": "b",
            "exception.type:KeyError": "b",
            "service.name:refund": "abcdef",
            "metadata.plan:pro": "de",
            "metadata.seats>=3": "d",
            "metadata.plan:free": "f",
            ".no:thing": "",
        }.items():
            assert found(condition) == runs, condition
        assert found(".size:12", ".list:red") == "a"
        assert found(".size:12", "cloud.region:eu") == ""
        assert len(found("service.name:refund", limit=2)) == 2
        traces = frozenset((b"a" * 16, b"b" * 16))
        assert found("service.name:refund", traces=traces) == "ab"

    def test_a_list_is_short_however_long_the_names_are(self, store: WholeStore):
        long = "n" * 1_000_000
        names = (a.GEN_AI_AGENT_NAME, a.GEN_AI_CONVERSATION_ID, a.GEN_AI_REQUEST_MODEL, a.ERROR_TYPE)
        names += (a.GEN_AI_PROVIDER_NAME, a.GEN_AI_AGENT_VERSION, a.GEN_AI_TOOL_NAME)
        spans = [
            span_of(
                b"l" * 16, number, name=long, service=service, error=True, **dict.fromkeys(names, long)
            )
            for number, service in enumerate(("", long), 1)
        ]
        tool = span_of(b"l" * 16, 3, gen_ai__operation__name="execute_tool", gen_ai__tool__name=long)
        made = HandMade().start(**{a.PLAYHEAD_RUN_AGENT: long})
        for batch in (Batch([spans[0]]), Batch([spans[1], tool]), batch_of(made)):
            store.commit(batch)
        runs = list(store.runs(Query()))
        assert len(runs) == 2 and len(msgspec.json.encode(runs)) < 12_000
        assert sum(map(len, store.names(b"l" * 16).values())) < 2000
        store.sum_up()
        assert list(store.runs(Query())) == runs

    @pytest.mark.parametrize("summed_up", [False, True])
    def test_processes_that_succeed_without_a_step_can_be_left_out(
        self, store: WholeStore, summed_up: bool
    ):
        started = [HandMade(bytes([one]) * 16, bytes([one]) * 16).start() for one in range(1, 5)]
        idle, failed, lost, busy = started
        busy.chat()
        for made in (idle.exit(), failed.exit(1), lost, busy.exit()):
            store.commit(batch_of(made))
        store.commit(Batch([span_of(b"f" * 16, 1, kind=1)]))
        if summed_up:
            store.sum_up()
        listed = {run.trace_id for run in store.runs(Query(without_idle=True))}
        assert listed == {made.trace_id.hex() for made in (failed, lost, busy)} | {"66" * 16}
        assert len(list(store.runs(Query()))) == 5

    def test_runs_are_listed_newest_first_and_filtered(self, store: Store):
        for number in range(1, 6):
            trace = bytes([number]) * 16
            service = "odd" if number % 2 else "even"
            store.commit(Batch([span_of(trace, number, service=service, error=number == 3)]))
        assert [run.name for run in store.runs(Query())] == [
            "odd-3",
            "even-2",
            "odd-2",
            "even-1",
            "odd-1",
        ]
        assert [run.name for run in store.runs(Query(agent="even"))] == ["even-2", "even-1"]
        assert [run.name for run in store.runs(Query(status="failure"))] == ["odd-2"]
        assert [run.name for run in store.runs(Query(limit=2))] == ["odd-3", "even-2"]
        assert list(store.runs(Query(agent="nobody"))) == []

    def test_more_runs_than_are_read_at_a_time_are_listed_once_each(self, store: Store):
        spans = [
            span_of(number.to_bytes(16, "big"), 1 + number // 10, error=number % 40 == 0)
            for number in range(1, 201)
        ]
        store.commit(Batch(spans))
        listed = [int(run.trace_id, 16) for run in store.runs(Query(limit=1000))]
        assert listed == sorted(range(1, 201), key=lambda number: (-(number // 10), number))
        failed = [int(run.trace_id, 16) for run in store.runs(Query(status="failure", limit=3))]
        assert failed == [200, 160, 120]
        assert len(list(store.runs(Query(status="success", limit=1000)))) == 195

    @pytest.mark.parametrize("sort", get_args(Sort))
    @pytest.mark.parametrize("ascending", [False, True])
    def test_runs_are_paged_in_any_order(self, store: Store, sort: Sort, ascending: bool):
        for number in range(1, 24):
            trace = number.to_bytes(16, "big")
            end_ns = START_NS + 1_000_000 * (number % 4)
            spans = [span_of(trace, 1 + number % 3, end_ns=end_ns, **CHAT, **usage(number % 5))]
            others = range(number % 4)
            spans += [span_of(trace, 100 + n, parent=1, error=n > 0, **CHAT) for n in others]
            store.commit(Batch(spans))
        whole = list(store.runs(Query(sort=sort, ascending=ascending)))
        assert len(whole) == 23
        measures = [measure_of(run, sort) for run in whole]
        assert measures == sorted(measures, reverse=not ascending)
        assert len(set(measures)) > 2 or sort == "cost"
        pages: list[RunSummary] = []
        query = Query(sort=sort, ascending=ascending, limit=5)
        while page := list(store.runs(query)):
            pages += page
            query = msgspec.structs.replace(query, after=page_cursor(page[-1], query))
        assert pages == whole

    def test_runs_are_found_by_what_they_used(self, store: Store):
        for number in range(1, 13):
            trace = bytes([number]) * 16
            used: dict[str, Any] = {
                "gen_ai__provider__name": "openai" if number % 2 else "anthropic",
                "gen_ai__request__model": "gpt-4o" if number % 2 else "claude-sonnet-4-5",
                "gen_ai__conversation__id": f"talk {number // 4}",
                "gen_ai__agent__version": f"1.{number % 3}",
            }
            spans = [
                span_of(trace, 1, name="root"),
                span_of(trace, 2, parent=1, gen_ai__operation__name="chat", **used, **usage(number)),
                span_of(
                    trace,
                    3,
                    parent=1,
                    error=number > 8,
                    gen_ai__operation__name="execute_tool",
                    gen_ai__tool__name=f"tool {number % 5}",
                    **({"error.type": "timeout"} if number > 10 else {}),
                ),
            ]
            store.commit(Batch(spans))

        def found(**given: Any) -> list[int]:
            return [int(run.trace_id[:2], 16) for run in store.runs(Query(ascending=True, **given))]

        assert found(provider="anthropic") == [2, 4, 6, 8, 10, 12]
        assert found(model="gpt-4o", version="1.1") == [1, 7]
        assert found(conversation="talk 1") == [4, 5, 6, 7]
        assert found(tool="tool 3") == [3, 8]
        assert found(tool="tool 3", sort="cost", model="gpt-4o") == [3]
        assert found(has_errors=True) == [9, 10, 11, 12]
        assert found(has_errors=False, limit=2) == [1, 2]
        assert found(error_type="timeout", status="success") == [11, 12]
        assert found(error_type="_OTHER", agent="refund") == [9, 10]
        # 1000 and 10 tokens a step: $ 0.0026 of one model, $ 0.00315 of the other
        assert found(cost_from_usd=0.0286, cost_below_usd=0.0378) == [10, 11]
        assert found(model="gpt-5000") == found(environment="prod") == []
        (twelve,) = store.runs(Query(sort="cost", limit=1))
        assert (twelve.cost_usd, twelve.providers, twelve.error_types) == (
            0.0378,
            ["anthropic"],
            ["timeout"],
        )

    def test_a_place_that_is_none_is_refused(self, store: Store):
        for after in ("x", "1", "1.xy", "1.00"):
            with pytest.raises(UsageError, match="not a cursor"):
                list(store.runs(Query(after=after)))

    def test_a_run_is_found_by_what_a_user_types(self, store: Store):
        traces = ["4f2a1111" + "1" * 24, "4f2a1111" + "9" * 24, "bb" * 16]
        for number, trace in enumerate(traces, 1):
            store.commit(Batch([span_of(bytes.fromhex(trace), number, error=number == 2)]))
        for typed, name in {
            "refund-2": "refund-2",
            "last": "refund-3",
            "last-1": "refund-2",
            "last-2": "refund-1",
            "failed": "refund-2",
            "bbbbbbbb": "refund-3",
            "bb" * 16: "refund-3",
            traces[0].upper(): "refund-1",
            traces[0] + "-0000000000000001": "refund-1",
            "4f2a11111": "refund-1",
        }.items():
            assert store.resolve(typed).name == name, typed

    def test_the_name_of_an_agent_is_its_latest_run(self, store: Store):
        step = {"gen_ai__operation__name": "chat"}
        for number, (service, said) in enumerate(
            (("Order Desk", step), ("refund", step), ("Order Desk", step), ("Order Desk", {})), 1
        ):
            store.commit(Batch([span_of(bytes([number]) * 16, number, service=service, **said)]))
        store.commit(Batch([span_of(b"d" * 16, 9, service="deadbeef")]))
        for typed, name in {
            "refund": "refund-1",
            "Order Desk": "order-desk-2",
            "order-desk": "order-desk-2",
            "deadbeef": "deadbeef-1",
        }.items():
            assert store.resolve(typed).name == name, typed
        for agent in ("Order Desk", "order-desk"):
            listed = [run.name for run in store.runs(Query(agent=agent))]
            assert listed == ["order-desk-3", "order-desk-2", "order-desk-1"], agent
        with pytest.raises(RunUnknown):
            store.resolve("order")

    def test_the_last_run_is_one_with_something_in_it(self, store: Store):
        step = {"gen_ai__operation__name": "chat"}
        for number, said in enumerate((step, {}, step, {}), 1):
            store.commit(Batch([span_of(bytes([number]) * 16, number, **said)]))
        last = [store.resolve(f"last-{back}").trace_id[:2] for back in range(4)]
        assert last == ["03", "01", "04", "02"]
        with pytest.raises(RunUnknown, match="only 4 runs"):
            store.resolve("last-4")

    def test_what_cannot_be_found_is_said_with_what_is_near(self, store: Store):
        with pytest.raises(RunUnknown, match="no runs yet") as caught:
            store.resolve("last")
        assert caught.value.hint == "playhead record agent.py"
        for number, trace in enumerate(("4f2a1111" + "1" * 24, "4f2a1111" + "9" * 24), 1):
            store.commit(Batch([span_of(bytes.fromhex(trace), number)]))
        with pytest.raises(RunUnknown, match='no run is called "refnd-2"') as caught:
            store.resolve("refnd-2")
        assert caught.value.hint == "did you mean refund-2, refund-1?"
        with pytest.raises(RunUnknown, match="only 2 runs"):
            store.resolve("last-2")
        with pytest.raises(RunUnknown, match="no run has failed"):
            store.resolve("failed")
        with pytest.raises(RunUnknown, match='no run has the id "cccccccc"'):
            store.resolve("cccccccc")
        with pytest.raises(RunUnknown, match='no run is called "4f2a111"'):
            store.resolve("4f2a111")
        with pytest.raises(RunAmbiguous, match=r"refund-1 \(4f2a1+\) or refund-2 \(4f2a1+9+\)"):
            store.resolve("4f2a1111")
