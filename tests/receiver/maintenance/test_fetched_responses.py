"""A response that was made in background costs once, however often it is fetched."""

from playhead_instrumentation.control.spending import Spent
from playhead_receiver.maintenance.counted_once import CountedOnce
from playhead_receiver.storage.runs.summary_fold import token_bearers
from playhead_receiver.storage.values.span_labels import Label, SpanRow, Usage
from playhead_replay.run.spans import Span
from playhead_replay.run.token_usage import token_bearers as bearers_of_run
from playhead_semconv import attributes as a


def fetch(id: bytes, at_ns: int, response: str = "resp_1", call: bool = False) -> SpanRow:
    label = Label(step=True, fetched=response, call=call)
    return SpanRow(id, b"", at_ns, at_ns + 1, label=label, usage=Usage(10, 0, 0, 50))


FETCHES = [fetch(b"b", 2), fetch(b"a", 1), fetch(b"c", 3, "resp_2")]


def test_the_first_fetch_of_a_response_bears_its_tokens():
    assert {row.span_id for row in token_bearers(FETCHES)} == {b"a", b"c"}


def test_later_fetches_are_not_counted_again():
    counted = CountedOnce()
    assert counted.of(b"t", FETCHES[1:2], [b"a"]).bearers == {b"a"}
    assert counted.of(b"t", FETCHES[:1], [b"b"]).bearers == set()
    assert counted.of(b"t", FETCHES[2:], [b"c"]).bearers == {b"c"}


def test_a_call_that_has_the_usage_bears_it_and_each_call_does():
    rows = [fetch(b"a", 1), fetch(b"b", 2, call=True), fetch(b"c", 3, call=True)]
    assert {row.span_id for row in token_bearers(rows)} == {b"b", b"c"}
    counted = CountedOnce()
    assert counted.of(b"t", rows[1:], [b"b", b"c"]).bearers == {b"b", b"c"}
    assert counted.of(b"t", rows[:1], [b"a"]).bearers == set()


def test_a_streamed_background_response_that_is_fetched_is_counted_once():
    usage = {a.GEN_AI_RESPONSE_ID: "resp_1", a.GEN_AI_USAGE_INPUT_TOKENS: 10}
    call = {**usage, a.GEN_AI_OPERATION_NAME: "chat", a.OPENAI_API_TYPE: "responses"}
    fetched = {**usage, a.GEN_AI_OPERATION_NAME: "fetch_response"}
    spans = [
        Span("t", id, "", id, 3, began, began + 1, dict(at))
        for id, began, at in (("a", 1, call), ("b", 2, fetched), ("c", 3, call))
    ]
    assert [span.span_id for span in bearers_of_run(spans)] == ["a", "c"]
    spent = Spent()
    for at in (
        {a.GEN_AI_OPERATION_NAME: "fetch_response", a.GEN_AI_RESPONSE_ID: "resp_1"},
        call,
        fetched,
        call,
    ):
        spent.used("t", at, 0)
    assert spent.tokens("t") == 20


def test_a_run_sums_each_response_once():
    at = {
        a.GEN_AI_OPERATION_NAME: "fetch_response",
        a.GEN_AI_RESPONSE_ID: "resp_1",
        a.GEN_AI_USAGE_INPUT_TOKENS: 10,
    }
    spans = [
        Span("t", id, "", "fetch_response", 3, began, began + 1, dict(at))
        for id, began in (("b", 2), ("a", 1))
    ]
    assert [span.span_id for span in bearers_of_run(spans)] == ["a"]
