"""A run as it is read, over HTTP: outline, transcript, moments, places of a text."""

import httpx
import pytest
from support.starting.cli import refund
from support.starting.running import until
from support.tapes.batches import span_of
from support.tapes.handmade import TRACE, HandMade, span_id

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_replay import Run
from playhead_semconv import attributes as a


def test_an_outline_has_the_spans_of_the_tree_in_columns(api: httpx.Client, receiver: Receiver):
    outline = api.get("/v1/runs/refund-1/outline").json()
    spans = api.get("/v1/runs/refund-1", params={"limit": 1000}).json()["spans"]
    assert outline["span_id"] == [one["span_id"] for one in spans]
    assert [outline["names"][at] for at in outline["name"]] == [one["name"] for one in spans]
    assert outline["depth"] == [one["depth"] for one in spans]
    assert outline["below"] == [one["descendants"] for one in spans]
    began = outline["run"]["started_ns"]
    assert [began + at for at in outline["start_ns"]] == [one["started_ns"] for one in spans]
    assert [bool(one & 1) for one in outline["flags"]] == [one["failed"] for one in spans]
    ids = [None if at < 0 else outline["span_id"][at] for at in outline["parent"]]
    known = {one["span_id"] for one in spans}
    assert ids == [one["parent_id"] if one["parent_id"] in known else None for one in spans]


@pytest.mark.parametrize("pieces", [3, 1000])
def test_chunks_of_calls_and_attempts_have_their_times(
    api: httpx.Client, receiver: Receiver, pieces: int
):
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    call, attempt = (span_id(one).hex() for one in made.stream((b"piece",) * pieces))
    tool = span_id(made.tool("search", "{}")).hex()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    run = made.trace_id.hex()
    asked = {"spans": ",".join((call, attempt, tool))}
    found = api.get(f"/v1/runs/{run}/chunks", params=asked).json()
    exchanges = api.get(f"/v1/spans/{run}/{call}/exchanges").json()["exchanges"]
    began = api.get(f"/v1/runs/{run}/outline").json()["run"]["started_ns"]
    times = [one["time_ns"] - began for one in exchanges[0]["chunks"]]
    assert len(times) == pieces
    assert sorted(found["span_id"]) == sorted([attempt, call])
    for shown in found["time_ns"]:
        assert len(shown) == min(pieces, 256)
        assert shown == sorted(set(shown))
        assert (shown[0], shown[-1]) == (times[0], times[-1])
        assert set(shown) <= set(times)


def test_rows_have_the_tool_the_path_and_a_short_text(api: httpx.Client, receiver: Receiver):
    made = HandMade(b"\x05" * 16, b"\x06" * 16).start()
    made.chat()
    made.tool("search", '{"order": 81}')
    called = made.begin(
        "GET",
        kind=3,
        **{
            a.HTTP_REQUEST_METHOD: "GET",
            a.URL_FULL: "http://shop/orders/81?key=1",
            a.URL_PATH: "/orders/81",
        },
    )
    made.finish(called)
    made.exit()
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    run = made.trace_id.hex()
    ids = api.get(f"/v1/runs/{run}/outline").json()["span_id"]
    found = api.get(f"/v1/runs/{run}/texts", params={"spans": ",".join(ids)}).json()
    assert sorted(found["span_id"]) == sorted(ids)
    rows = list(zip(found["kind"], found["label"], found["text"], strict=True))
    assert ("http", "GET /orders/81", "shop") in rows
    assert any(kind == "tool" and label == "search" and "81" in text for kind, label, text in rows)
    assert any(kind == "model" for kind, _, _ in rows)
    assert all(len(text) <= 160 for _, _, text in rows)


def test_an_outline_may_be_only_its_beginning(api: httpx.Client):
    whole = api.get("/v1/runs/refund-1/outline").json()
    first = api.get("/v1/runs/refund-1/outline", params={"limit": 5}).json()
    assert first["spans"] == whole["spans"] == len(whole["span_id"])
    assert [first["names"][at] for at in first["name"]] == [whole["names"][at] for at in whole["name"]][
        :5
    ]
    for column in ("span_id", "parent", "depth", "below", "start_ns", "duration_ns", "step", "flags"):
        assert first[column] == whole[column][:5], column


def test_an_outline_is_read_anew_when_its_run_has_changed(api: httpx.Client, receiver: Receiver):
    summary = "/v1/runs/refund-1/summary"
    until(lambda: api.get(summary).json()["failure_codes"], "its failures are derived")
    before = api.get("/v1/runs/refund-1/outline").json()
    other = b"\x09" * 16
    receiver.store.commit(Batch([span_of(other, 1, name="elsewhere")]))
    assert api.get("/v1/runs/refund-1/outline").json() == before
    receiver.store.commit(Batch([span_of(TRACE, 0xFF, name="more")]))
    after = api.get("/v1/runs/refund-1/outline").json()
    assert after["spans"] == before["spans"] + 1
    assert "more" in after["names"]
    receiver.store.commit(Batch([span_of(TRACE, 0xFF, name="more, again", end_ns=2**62)]))
    assert "more, again" in api.get("/v1/runs/refund-1/outline").json()["names"]


def test_steps_in_an_outline_have_the_numbers_that_people_see(api: httpx.Client, receiver: Receiver):
    outline = api.get("/v1/runs/refund-1/outline").json()
    numbers = dict(zip(outline["span_id"], outline["step"], strict=True))
    steps = Run.load(receiver.store, TRACE.hex()).steps
    assert {one.span.span_id: one.number for one in steps} == {
        span: number for span, number in numbers.items() if number
    }


def test_a_request_that_no_call_encloses_is_a_step_too(api: httpx.Client, receiver: Receiver):
    made = refund(b"\x0a" * 16, bytes(range(1, 17)))
    bare = made.begin("GET", kind=3, **{a.HTTP_REQUEST_METHOD: "GET"})
    made.exchange("GET http://weather/oslo", request=b"", span=bare)
    made.finish(bare)
    made.chat()
    framework = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
    outer = made.begin("ChatOpenAI", **framework)
    made.finish(made.begin("chat gpt-4o", parent=outer, kind=3, **framework))
    made.finish(outer)
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    outline = api.get(f"/v1/runs/{'0a' * 16}/outline").json()
    steps = Run.load(receiver.store, "0a" * 16).steps
    numbers = dict(zip(outline["span_id"], outline["step"], strict=True))
    assert [numbers[one.span.span_id] for one in steps] == list(range(1, len(steps) + 1))
    assert outline["run"]["steps"] == len(steps) == max(outline["step"])
    flags = dict(zip(outline["span_id"], outline["flags"], strict=True))
    assert flags[f"{bare:016x}"] == 0
    lines = api.get(f"/v1/runs/{'0a' * 16}", params={"limit": 1000}).json()["spans"]
    assert {one["span_id"] for one in lines if one["step"]} == {one.span.span_id for one in steps}
    assert f"{outer:016x}" not in {one.span.span_id for one in steps}


def test_costs_in_an_outline_add_up_to_that_of_the_run(api: httpx.Client):
    outline = api.get("/v1/runs/refund-1/outline").json()
    costs = [one for one in outline["cost_usd"] if one is not None]
    assert costs
    assert sum(costs) == pytest.approx(outline["run"]["cost_usd"])


def test_a_run_says_what_its_level_left_out(api: httpx.Client, receiver: Receiver):
    made = refund(
        b"\x0b" * 16,
        bytes(range(2, 18)),
        **{a.PLAYHEAD_RUN_LEVEL: "exchanges", a.PLAYHEAD_RUN_BOUNDARIES: ["http", "tools"]},
    )
    receiver.store.commit(Batch(made.spans, made.facts, {}))
    kept = api.get(f"/v1/runs/{'0b' * 16}/kept").json()
    assert kept["level"] == "exchanges"
    assert kept["not_kept"]["stdin"] == "causal" and "http" not in kept["not_kept"]
    receiver.store.commit(Batch([span_of(b"\x0c" * 16, 1, gen_ai__operation__name="chat")]))
    assert api.get(f"/v1/runs/{'0c' * 16}/kept").json() == {"level": None, "not_kept": {}}


def test_a_transcript_says_each_message_once(api: httpx.Client):
    transcript = api.get("/v1/runs/refund-1/transcript").json()
    said = [(one["lane"], one["kind"], one["role"], str(one["parts"])) for one in transcript["said"]]
    assert said
    assert len(said) == len(set(said))
    assert [one["step"] for one in transcript["said"]] == sorted(
        one["step"] for one in transcript["said"]
    )
    assert "order 81" in str(transcript["said"])


def test_a_moment_knows_what_had_been_said_by_then(api: httpx.Client):
    first, last = (
        api.get("/v1/runs/refund-1/moment", params={"after": after}).json() for after in (0, 11)
    )
    assert (first["step"], last["step"], last["steps"]) == (0, 11, 11)
    assert first["conversations"] == []
    assert last["conversations"]
    beyond = api.get("/v1/runs/refund-1/moment", params={"after": 12})
    assert beyond.status_code == 422
    assert "steps 1 to 11" in beyond.text


def test_a_text_is_found_within_a_run_with_its_places(api: httpx.Client):
    found = api.get("/v1/runs/refund-1/places", params={"text": "ORDER 81"}).json()
    assert not found["truncated"]
    assert {one["hit"].lower() for one in found["places"]} == {"order 81"}
    assert all(one["step"] for one in found["places"])
    assert api.get("/v1/runs/refund-1/places", params={"text": "nowhere"}).json()["places"] == []
    one = api.get("/v1/runs/refund-1/places", params={"text": "o", "limit": 1}).json()
    assert len(one["places"]) == 1
    assert one["truncated"]


def test_long_answers_are_compressed_for_who_takes_it(api: httpx.Client):
    packed = api.get("/openapi.json", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = api.get("/openapi.json", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == packed.json()
