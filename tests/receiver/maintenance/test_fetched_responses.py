"""A response that was made in background costs once, however often it is fetched."""

from playhead_receiver.maintenance.counted_once import CountedOnce
from playhead_receiver.store.runs.summary_fold import SpanRow, token_bearers
from playhead_receiver.store.values.span_labels import Label, Usage
from playhead_replay.run.spans import Span
from playhead_replay.run.token_usage import token_bearers as bearers_of_run
from playhead_semconv import attributes as a


def fetch(id: bytes, at_ns: int, response: str = "resp_1") -> SpanRow:
    label = Label(step=True, fetched=response)
    return SpanRow(id, b"", at_ns, at_ns + 1, label=label, usage=Usage(10, 0, 0, 50))


FETCHES = [fetch(b"b", 2), fetch(b"a", 1), fetch(b"c", 3, "resp_2")]


def test_the_first_fetch_of_a_response_bears_its_tokens():
    assert {row.span_id for row in token_bearers(FETCHES)} == {b"a", b"c"}


def test_later_fetches_are_not_counted_again():
    counted = CountedOnce()
    assert counted.of(b"t", FETCHES[1:2], [b"a"]).bearers == {b"a"}
    assert counted.of(b"t", FETCHES[:1], [b"b"]).bearers == set()
    assert counted.of(b"t", FETCHES[2:], [b"c"]).bearers == {b"c"}


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
