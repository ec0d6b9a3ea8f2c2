"""What a span left out comes back as the agent had it."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.tapes.handmade import INSTANCE, ROOT, TRACE, HandMade, HandMadeStore, span_id
from support.tapes.leftout import (
    URL,
    answer_chunks,
    attributes,
    chat,
    derived_from,
    exchange,
    request_body,
)

from playhead_core.facts import Content, Delivery, ExchangeId
from playhead_receiver.storage import Batch, Store, StoredSpan, open_store
from playhead_receiver.storage.spans.whole_spans import Deriver, pending_spans, span_of, whole_span
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def test_a_span_has_every_attribute_that_it_had_before_any_was_left_out(store: Store):
    made = HandMade().start()
    calls = [chat(made, f"question {number}", f"answer {number}") for number in range(3)]
    store.commit(Batch([call.stored for call in calls], made.facts))
    deriver = Deriver(store)
    for call, stored in zip(calls, store.spans(TRACE), strict=True):
        assert deriver.is_whole(stored)
        envelope = deriver.whole(stored)
        assert attributes(envelope) == {a.GEN_AI_OPERATION_NAME: "chat", **call.whole}
        assert whole_span(store, stored) == envelope
        assert span_of(envelope).name == "chat gpt-4o"
    messages = json.loads(attributes(whole_span(store, calls[1].stored))[a.GEN_AI_OUTPUT_MESSAGES])
    assert messages[0]["parts"] == [{"type": "text", "content": "answer 1"}]


def test_a_request_that_extends_an_earlier_one_is_derived_too(store: Store):
    made = HandMade().start()
    first = chat(made, "question", "answer")
    second = chat(made, "question and another", "answer 2")
    bodies = [fact for fact in made.facts if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST]
    whole = bodies[1].body
    base = bodies[0].body
    assert (
        whole is not None and whole.inline is not None and base is not None and base.inline is not None
    )
    shared = 0
    while whole.inline[shared] == base.inline[shared]:
        shared += 1
    reference = Content(whole.digest, whole.size, whole.inline[shared:], base.digest, shared)
    facts = [
        msgspec.structs.replace(fact, body=reference) if fact is bodies[1] else fact
        for fact in made.facts
    ]
    store.commit(Batch([first.stored, second.stored], facts))
    found = attributes(whole_span(store, second.stored))
    assert found[a.GEN_AI_INPUT_MESSAGES] == second.whole[a.GEN_AI_INPUT_MESSAGES]


def test_a_span_that_overtakes_its_facts_is_not_whole_until_they_come(store: Store):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored], made.facts[:3]))
    deriver = Deriver(store)
    assert not deriver.is_whole(call.stored)
    assert a.GEN_AI_OUTPUT_MESSAGES not in attributes(deriver.whole(call.stored))
    store.commit(Batch(facts=made.facts))
    assert deriver.is_whole(call.stored)
    assert attributes(deriver.whole(call.stored))[a.GEN_AI_OUTPUT_MESSAGES]


def test_a_span_whose_facts_are_known_to_be_lost_is_as_whole_as_it_gets(store: Store):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    beat = made.fact(
        e.PLAYHEAD_PROCESS_HEARTBEAT, attributes={a.PLAYHEAD_PROCESS_LAST_SEQ: call.rests_on + 1}
    )
    store.commit(Batch([call.stored], [*made.facts[:2], beat]))
    deriver = Deriver(store)
    assert deriver.is_whole(call.stored)
    envelope = deriver.whole(call.stored)
    assert envelope.SerializeToString() == call.stored.otlp


def test_a_span_that_is_whole_already_waits_for_nothing(store: Store):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored], made.facts))
    whole = whole_span(store, call.stored)
    elsewhere = StoredSpan(TRACE, call.stored.span_id, whole.SerializeToString())
    with_no_tape = Deriver(HandMadeStore())
    assert with_no_tape.is_whole(elsewhere)
    assert with_no_tape.whole(elsewhere) == whole


def test_spans_that_left_nothing_out_stay_as_they_came(store: Store):
    made = HandMade().start()
    made.chat()
    deriver = Deriver(store)
    for span in made.spans:
        assert deriver.is_whole(span)
        assert deriver.whole(span).SerializeToString() == span.otlp


@pytest.mark.parametrize(
    "broken",
    [
        {a.PLAYHEAD_WIRE: "telepathy"},
        {a.PLAYHEAD_EXCHANGE_REF: "nonsense"},
        {a.PLAYHEAD_EXCHANGE_REF: f"{INSTANCE.hex()}/{ExchangeId(9, 'http', 9)}"},
        {a.PLAYHEAD_RESTS_ON: "many", a.PLAYHEAD_EXCHANGE_REF: "zz/zz"},
        {a.PLAYHEAD_DERIVED: "all"},
    ],
)
def test_references_that_lead_nowhere_leave_the_span_as_it_came(store: Store, broken: dict[str, str]):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch(facts=made.facts))
    number = made.begin("chat gpt-4o")
    sound = {
        a.PLAYHEAD_WIRE: "openai.chat",
        a.PLAYHEAD_EXCHANGE_REF: f"{INSTANCE.hex()}/{call.exchange}",
        a.PLAYHEAD_DERIVED: [a.GEN_AI_OUTPUT_MESSAGES],
    }
    made.finish(number, **{**sound, **broken})
    deriver = Deriver(store)
    deriver.is_whole(made.spans[-1])
    assert deriver.whole(made.spans[-1]).SerializeToString() == made.spans[-1].otlp


@pytest.mark.parametrize("carried", [False, True], ids=["start facts", "starts in the ask"])
def test_a_call_that_died_half_way_shows_what_had_come(store: Store, carried: bool):
    made = HandMade().start()
    call = made.begin(
        "chat gpt-4o",
        kind=3,
        carried=carried,
        **{a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"},
    )
    method = {a.HTTP_REQUEST_METHOD: "POST"}
    attempt = made.begin("POST", parent=call, kind=3, carried=carried, **method)
    request, chunks = request_body("question"), answer_chunks("a long answer")[:3]
    id = exchange(made, request, (), attempt)
    made.facts.pop()  # the end of the exchange never came
    for chunk in chunks:
        made.fact(
            e.PLAYHEAD_EXCHANGE_DATA,
            span=attempt,
            exchange=id,
            delivery=Delivery(1, 0),
            body=Content.chunk(chunk),
        )
    store.commit(Batch(facts=made.facts))
    envelopes = {span_of(found).span_id: found for found in pending_spans(store, TRACE)}
    assert list(envelopes) == [span_id(ROOT), span_id(call), span_id(attempt)]
    expected = derived_from(request, chunks, complete=False)
    died = envelopes[span_id(call)]
    assert attributes(died) == {
        **expected.attributes,
        a.GEN_AI_OPERATION_NAME: "chat",
        a.GEN_AI_REQUEST_MODEL: "gpt-4o",
        a.PLAYHEAD_WIRE: "openai.chat",
        a.PLAYHEAD_EXCHANGE_REF: f"{INSTANCE.hex()}/{id}",
    }
    assert a.GEN_AI_INPUT_MESSAGES in attributes(died)
    span = span_of(died)
    assert (span.name, span.kind, span.parent_span_id) == ("chat gpt-4o", 3, span_id(ROOT))
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (made.facts[0].time_ns, 0)
    assert attributes(envelopes[span_id(attempt)])[a.HTTP_RESPONSE_STATUS_CODE] == 200
    assert a.PLAYHEAD_WIRE not in attributes(envelopes[span_id(ROOT)])


@pytest.mark.parametrize("carried", [False, True], ids=["a start fact", "a start in the ask"])
def test_a_call_that_died_before_any_answer_shows_what_was_asked(store: Store, carried: bool):
    made = HandMade().start()
    call = made.begin("chat gpt-4o", kind=3, carried=carried, **{a.GEN_AI_OPERATION_NAME: "chat"})
    made.exchange(f"POST {URL}", request_body("question"), span=call, answered=False)
    store.commit(Batch(facts=made.facts))
    _, envelope = pending_spans(store, TRACE)
    found = attributes(envelope)
    assert "question" in found[a.GEN_AI_INPUT_MESSAGES]
    assert a.GEN_AI_OUTPUT_MESSAGES not in found
