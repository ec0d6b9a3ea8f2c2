from typing import Any

import pytest
from support.tapes.handmade import MAIN, NOW_INSTANCE, NOW_TRACE, HandMade

from playhead_core.facts import Content, ErrorRecord, ExchangeId, Fidelity
from playhead_core.normalize import Pair, text_of
from playhead_replay import Run
from playhead_replay.report.compare import compare
from playhead_replay.report.report import Report
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ANSWER = b'{"text":"hello"}'
SECOND = b'{"messages":["hello"]}'


def agent(made: HandMade, answers: tuple[bytes, bytes] = (ANSWER, ANSWER)) -> HandMade:
    """An agent of two calls: the second request and stdout show what the first response said."""
    made.start()
    made.chat(b'{"messages":[]}', (answers[0][:4], answers[0][4:]))
    made.say("hello\n")
    made.chat(SECOND, (answers[1],))
    made.say("bye\n")
    return made.exit(0)


def replayed(recorded: HandMade) -> HandMade:
    return HandMade(NOW_INSTANCE, NOW_TRACE)


def stated(recorded: HandMade, index: int, fidelity: str = "exact") -> dict[str, Any]:
    exchange = list(recorded.tape().exchanges().values())[index]
    return {
        a.PLAYHEAD_FIDELITY: fidelity,
        a.PLAYHEAD_ORIGIN_INSTANCE: recorded.instance.hex(),
        a.PLAYHEAD_ORIGIN_SEQ: exchange.first_seq,
    }


def report_of(recorded: HandMade, now: HandMade) -> Report:
    return compare(recorded.tape(), now.tape(), Run.of_tape(recorded.tape(), name="refund-7"))


def test_a_replay_that_agrees_in_everything_is_identical():
    recorded = agent(HandMade())
    report = report_of(recorded, agent(HandMade(NOW_INSTANCE, NOW_TRACE)))
    assert report.verdict == "identical"
    assert report.exit_code == 0
    assert list(report.lines()) == [
        "exact 2/2  moved 0  changed 0  blocked 0  unused 0",
        "outputs: stdout 10 bytes identical, stderr 0 bytes identical, exit 0 identical, "
        "requests 2 identical, responses 32 bytes in 3 chunks identical, effects 0 identical",
        "identical (exit 0)",
    ]


def test_an_output_that_differs_is_placed_by_line_and_step():
    recorded = agent(HandMade())
    now = HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.chat(b'{"messages":[]}', (ANSWER[:4], ANSWER[4:]), **stated(recorded, 0))
    now.say("hello\n")
    now.chat(SECOND, (ANSWER,), **stated(recorded, 1))
    now.say("bYe\n").exit(0)
    report = report_of(recorded, now)
    assert (report.verdict, report.exit_code) == ("diverged", 1)
    assert report.count(Fidelity.EXACT) == 2
    assert list(report.lines())[2:] == [
        "first divergence after step 2: stdout, line 2",
        "  - recorded: bye",
        "  + now:      bYe",
        "diverged after step 2 (exit 1)",
    ]


def test_a_traceback_that_is_only_on_one_side_is_named_by_its_exception():
    text = 'warning\nTraceback (most recent call last):\n  File "agent.py", line 3, in f\n    ask()\n'
    recorded = HandMade().start().say("warning\n", "stderr").exit(0)
    now = HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.say(f"{text}OSError: no route\nat all\n", "stderr").exit(0)
    assert list(report_of(recorded, now).lines())[-4:-1] == [
        "first divergence before step 1: stderr, line 5",
        "  - recorded: (absent)",
        "  + now:      OSError: no route",
    ]
    assert list(report_of(now, recorded).lines())[-3:-1] == [
        "  - recorded: OSError: no route",
        "  + now:      (absent)",
    ]


def test_a_refused_request_names_the_nearest_recording_and_both_sides():
    recorded = agent(HandMade())
    now = HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.chat(b'{"messages":[]}', (ANSWER[:4], ANSWER[4:]), **stated(recorded, 0))
    now.say("hello\n")
    refused = ErrorRecord("playhead_core.errors", "ExchangeUnmatched", "no recording")
    now.chat(
        b'{"messages":["hallo"]}',
        status=0,
        how="error",
        error=refused,
        **{a.PLAYHEAD_FIDELITY: "blocked"},
    )
    now.exit(1)
    report = report_of(recorded, now)
    assert (report.verdict, report.exit_code) == ("blocked", 3)
    assert list(report.lines()) == [
        "exact 1/2  moved 0  changed 0  blocked 1  unused 1",
        "outputs: stdout differs, stderr 0 bytes identical, exit differs, requests differs, "
        "responses 16 bytes in 2 chunks identical, effects 0 identical",
        "first divergence at step 2: blocked main#1 POST http://provider/v1/chat/completions",
        "  the request no longer matches recording main#1: messages[0] changed",
        "  - recorded: hello",
        "  + now:      hallo",
        "3 more: --json lists all of them",
        "diverged and blocked at step 2 (exit 3)",
    ]
    assert report.unused == ["main#1 POST http://provider/v1/chat/completions"]
    assert [one.kind for one in report.divergences] == ["blocked", "unused", "stdout", "exit"]


def test_where_a_refused_request_differs_is_as_the_replay_says_it():
    """A value that it handed out in the place of a recorded one is no difference to it."""
    recorded = HandMade().start()
    recorded.chat(b'{"id":"1b2c","n":1}')
    now = replayed(recorded).start()
    refused = stated(recorded, 0, "blocked") | {a.PLAYHEAD_BLOCKED_DIFFERENCE: ["$.n", "1", "2"]}
    now.chat(b'{"id":"3d4e","n":2}', status=0, how="error", **refused)
    report = report_of(recorded.exit(0), now.exit(0))
    assert report.unused == []
    found = report.first_divergence
    assert found is not None and found.difference is not None
    assert (found.kind, found.difference.path) == ("blocked", "$.n")
    assert (found.difference.tape, found.difference.now) == ("1", "2")


def test_a_request_that_is_asked_once_too_often_is_exhausted():
    recorded = agent(HandMade())
    now = agent(HandMade(NOW_INSTANCE, NOW_TRACE))
    now.facts.pop()
    now.chat(SECOND, status=0, how="error", **{a.PLAYHEAD_FIDELITY: "blocked"})
    now.exit(0)
    report = report_of(recorded, now)
    first = report.first_divergence
    assert first is not None
    assert first.detail == "main#1 matches; every recording of it was already used"
    assert first.place == "after step 2"
    assert (report.exit_code, report.unused) == (3, [])


def test_a_statement_of_the_player_is_checked_against_the_bytes():
    recorded = agent(HandMade())
    now = HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.chat(b'{"messages":[1]}', (ANSWER[:4], ANSWER[4:]), **stated(recorded, 0))
    now.say("hello\n")
    now.chat(SECOND, (ANSWER,), **stated(recorded, 1))
    now.say("bye\n").exit(0)
    report = report_of(recorded, now)
    assert report.verdict == "diverged"
    assert report.count(Fidelity.CHANGED) == 1
    first = report.first_divergence
    assert first is not None
    assert (first.kind, first.step) == ("request", 1)
    assert first.difference is not None
    assert first.difference.path == "$.messages[0]"


@pytest.mark.parametrize(
    ("chunks", "fields", "path"),
    [
        ((ANSWER,), {}, "chunk sizes"),
        ((ANSWER[:4], ANSWER[4:].replace(b"l", b"L")), {}, "$.text"),
        ((ANSWER[:4], ANSWER[4:]), {"status": 201}, "status"),
        ((ANSWER[:4], ANSWER[4:]), {"how": "abandoned"}, "end"),
    ],
)
def test_an_answer_that_was_not_delivered_as_recorded_is_a_divergence(
    chunks: tuple[bytes, ...], fields: dict[str, Any], path: str
):
    recorded = agent(HandMade())
    now = HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.chat(b'{"messages":[]}', chunks, **fields, **stated(recorded, 0))
    now.say("hello\n")
    now.chat(SECOND, (ANSWER,), **stated(recorded, 1))
    now.say("bye\n").exit(0)
    report = report_of(recorded, now)
    first = report.first_divergence
    assert report.verdict == "diverged"
    assert first is not None
    assert (first.kind, first.step) == ("response", 1)
    assert first.difference is not None
    assert first.difference.path == path
    if path == "status":
        assert (first.difference.tape, first.difference.now) == ("200", "201")
    if path == "end":
        assert (first.difference.tape, first.difference.now) == ("complete", "abandoned")
    if path == "chunk sizes":
        assert (first.difference.tape, first.difference.now) == ("4 12", "16")


def test_identical_requests_that_changed_places_are_moved_and_not_identical():
    recorded, now = HandMade().start(), HandMade(NOW_INSTANCE, NOW_TRACE).start()
    for text in (b"1", b"2"):
        recorded.chat(b"{}", (text,))
    recorded.exit(0)
    for index in (1, 0):
        now.chat(b"{}", (b"21"[1 - index : 2 - index],), **stated(recorded, index, "moved"))
    now.exit(0)
    report = report_of(recorded, now)
    assert report.count(Fidelity.MOVED) == 2
    assert (report.verdict, report.exit_code) == ("diverged", 1)
    assert report.outputs[4].same


def test_without_statements_two_recordings_are_matched_by_place_then_by_content():
    recorded, now = HandMade().start(), HandMade(NOW_INSTANCE, NOW_TRACE).start()
    for body in (b'{"a":1}', b'{"a":2}', b'{"a":3}'):
        recorded.chat(body)
    for body in (b'{"a": 1}', b'{"a":3}', b'{"a":9}'):
        now.chat(body)
    recorded.exit(0)
    now.exit(0)
    report = report_of(recorded, now)
    counts = [report.count(one) for one in (Fidelity.EXACT, Fidelity.MOVED, Fidelity.CHANGED)]
    assert counts == [1, 1, 0]
    assert report.count(Fidelity.BLOCKED) == 1
    assert report.unused == ["main#1 POST http://provider/v1/chat/completions"]


def test_without_statements_a_recording_answers_once():
    recorded, now = HandMade().start(), HandMade(NOW_INSTANCE, NOW_TRACE).start()
    for body in (b'{"a":1}', b'{"a":2}'):
        recorded.chat(body)
    for body in (b'{"a":2}', b'{"a":2}'):
        now.chat(body)
    report = report_of(recorded.exit(0), now.exit(0))
    assert (report.count(Fidelity.MOVED), report.count(Fidelity.BLOCKED)) == (1, 1)
    assert report.unused == ["main#0 POST http://provider/v1/chat/completions"]


def test_an_exit_and_an_effect_that_differ_are_named():
    recorded, now = HandMade().start(), HandMade(NOW_INSTANCE, NOW_TRACE).start()
    recorded.say("one", "file", "/a").exit(0)
    now.say("two", "file", "/a").exit(2)
    report = report_of(recorded, now)
    assert [(one.kind, one.difference.path) for one in report.divergences if one.difference] == [
        ("effect", "line 1"),
        ("exit", "exit"),
    ]
    assert report.divergences[1].difference is not None
    assert (report.divergences[1].difference.tape, report.divergences[1].difference.now) == ("0", "2")


def test_what_the_firewall_refused_blocks_the_replay():
    recorded, now = HandMade().start().exit(0), HandMade(NOW_INSTANCE, NOW_TRACE).start()
    now.fact(
        "playhead.effect",
        MAIN,
        attributes={
            a.PLAYHEAD_EFFECT_KIND: "socket",
            a.PLAYHEAD_EFFECT_TARGET: "10.0.0.1:443",
            a.PLAYHEAD_FIDELITY: "blocked",
        },
    )
    now.exit(0)
    report = report_of(recorded, now)
    assert report.exit_code == 3
    assert report.boundaries == {"socket": {Fidelity.BLOCKED: 1}}
    assert next(iter(report.divergences)).what == "blocked socket 10.0.0.1:443"


def test_the_json_form_has_the_same_facts():
    recorded = agent(HandMade())
    now = agent(HandMade(NOW_INSTANCE, NOW_TRACE), (ANSWER, ANSWER.replace(b"hello", b"hallo")))
    found = report_of(recorded, now).to_json()
    assert found["schema_version"] == 1
    assert found["verdict"] == "diverged"
    assert found["fidelity"] == {
        "exact": 2,
        "volatile": 0,
        "moved": 0,
        "changed": 0,
        "live": 0,
        "blocked": 0,
        "unused": 0,
        "semantic": 0,
    }
    assert found["outputs"]["responses"]["identical"] is False
    assert found["first_divergence"] == {
        "kind": "response",
        "what": "response of main#1 POST http://provider/v1/chat/completions",
        "step": 2,
        "after_step": False,
        "path": "$.text",
        "tape": '"hello"',
        "now": '"hallo"',
        "nearest": None,
        "detail": None,
        "process": None,
    }


def test_the_level_is_the_last_that_the_tape_says():
    """A recording that had to turn causal says so when it ends."""
    recorded = HandMade().start(**{a.PLAYHEAD_RUN_LEVEL: "strict"})
    assert report_of(recorded, replayed(recorded).start()).level == "strict"
    recorded.fact(e.PLAYHEAD_PROCESS_EXIT, attributes={a.PLAYHEAD_RUN_LEVEL: "causal"})
    assert report_of(recorded, replayed(recorded).start()).level == "causal"


def test_who_lost_its_turn_when_recorded_is_named():
    made = HandMade().start()
    for how in ("blocks", "computes", "blocks"):
        told = {a.PLAYHEAD_TURN_THREAD: "worker", a.PLAYHEAD_TURN_HOW: how}
        made.fact(e.PLAYHEAD_TURN_LOST, attributes=told)
    made.exit(0)
    report = report_of(made, replayed(made).start().exit(0))
    assert report.divergences == []
    assert report.notes == [
        "worker lost its permit in the recording (blocks, computes): its order from then on may differ"
    ]


def test_at_the_end_kinds_come_in_their_order():
    recorded = agent(HandMade(), (ANSWER, ANSWER))
    recorded.facts.pop()
    cart, said = ExchangeId(MAIN, "state", 0), {a.PLAYHEAD_STATE_NAME: "cart"}
    recorded.fact(e.PLAYHEAD_STATE, exchange=cart, attributes=said, body=Content.of(b"1"))
    recorded.say("kept", "file.write", "a.txt")
    recorded.exit(0)
    now = replayed(recorded).start()
    now.chat(b'{"messages":[]}', (ANSWER[:4], ANSWER[4:]), **stated(recorded, 0))
    now.exit(1)
    report = report_of(recorded, now)
    kinds = [one.kind for one in report.divergences]
    assert kinds == ["unused", "state", "effect", "stdout", "exit"]
    assert report.first_divergence is not None
    assert report.first_divergence.what.startswith("main#1 POST ")


def test_a_blocked_effect_is_one_divergence():
    recorded = HandMade().start().say("kept", "file.write", "a.txt").exit(0)
    now = replayed(recorded).start()
    blocked = {a.PLAYHEAD_EFFECT_KIND: "file.write", a.PLAYHEAD_FIDELITY: "blocked"}
    now.fact(e.PLAYHEAD_EFFECT, attributes=blocked | {a.PLAYHEAD_EFFECT_TARGET: "/etc/x"})
    now.say("kept", "file.write", "a.txt").exit(0)
    report = report_of(recorded, now)
    assert [(one.kind, one.what) for one in report.divergences] == [
        ("blocked", "blocked file.write /etc/x")
    ]
    assert report.count(Fidelity.BLOCKED) == 1
    assert (report.verdict, report.exit_code) == ("blocked", 3)


def test_what_is_redacted_is_summed_over_processes():
    reports: list[Report] = []
    for counts in ((2, 3), (4,)):
        made = HandMade().start()
        for count in counts:
            made.fact(e.PLAYHEAD_STATE, attributes={a.PLAYHEAD_REDACTED_COUNT: count})
        reports.append(report_of(made.exit(0), replayed(made).start().exit(0)))
    whole, child = reports
    assert (whole.redacted, child.redacted) == (5, 4)
    whole.include("child.py", child)
    assert (whole.redacted, whole.to_json()["redacted"]) == (9, 9)
    assert "note: 9 values redacted on the tape" in list(whole.lines())


@pytest.mark.parametrize(("kind", "same"), [("websocket", True), ("grpc", True), ("http", False)])
def test_who_does_not_wait_for_the_end_of_messages_has_missed_nothing(kind: str, same: bool):
    def messages(made: HandMade, how: str, **stated: Any) -> HandMade:
        call = ExchangeId(MAIN, kind, 0)
        made.start()
        asked = {a.PLAYHEAD_ASK_KEY: "GET ws://provider/live", **stated}
        made.fact(e.PLAYHEAD_EXCHANGE_REQUEST, exchange=call, attributes=asked, body=Content.of(b""))
        made.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, body=Content.chunk(b"hello"))
        made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes={a.PLAYHEAD_END_HOW: how})
        return made.exit(0)

    recorded = messages(HandMade(), "complete")
    now = messages(replayed(recorded), "abandoned", **stated(recorded, 0))
    report = report_of(recorded, now)
    assert report.verdict == ("identical" if same else "diverged")
    assert [one.kind for one in report.divergences] == ([] if same else ["response"])


def test_states_that_differ_are_placed_by_step():
    def states(made: HandMade, *values: bytes, **stated: Any) -> HandMade:
        made.start()
        made.chat(b'{"messages":[]}', (ANSWER,), **stated)
        for number, value in enumerate(values):
            said = {a.PLAYHEAD_STATE_NAME: f"cart{number}"}
            id = ExchangeId(MAIN, "state", number)
            made.fact(e.PLAYHEAD_STATE, exchange=id, attributes=said, body=Content.of(value))
        return made.exit(0)

    recorded = states(HandMade(), b'{"n":1}', b"2", b"3")
    now = states(replayed(recorded), b'{"n":4}', b"2", b"3", b"5", **stated(recorded, 0))
    report = report_of(recorded, now)
    found = [(one.kind, one.what, one.place, one.seq) for one in report.divergences]
    seqs = [fact.seq for fact in now.facts if fact.name == e.PLAYHEAD_STATE]
    assert found == [
        ("state", "cart0", "after step 1", seqs[0]),
        ("state", "cart3", "after step 1", seqs[3]),
    ]
    differences = [one.difference for one in report.divergences]
    assert [(one.path, one.tape, one.now) for one in differences if one] == [
        ("$.n", "1", "4"),
        ("state", "(not said)", "cart3"),
    ]
    (check,) = (one for one in report.outputs if one.name == "states")
    assert (check.same, check.tape, check.now) == (False, "3", "4")
    same = report_of(recorded, states(replayed(recorded), b'{"n":1}', b"2", b"3", **stated(recorded, 0)))
    assert [one.same for one in same.outputs if one.name == "states"] == [True]


ONE, TWO = "0b1f9c6e-8d1c-4a53-9d3c-0a5d1f0c7e11", "5e2a7b90-3f44-4c1e-8a6b-9c0d2e4f6a22"
OTHER, LAST = "c3d4e5f6-1a2b-4c3d-8e4f-5a6b7c8d9e33", "d9e8f7a6-b5c4-4d3e-9f2a-1b0c9d8e7f44"


@pytest.mark.parametrize(
    ("now", "said", "fidelities"),
    [
        ((OTHER, LAST), ((ONE, OTHER), (TWO, LAST)), ["volatile", "volatile"]),
        ((OTHER, OTHER), ((ONE, OTHER), (TWO, OTHER)), ["volatile", "changed"]),
        ((OTHER, LAST), ((ONE, OTHER), None), ["volatile", "changed"]),
    ],
)
def test_values_that_were_handed_out_stand_for_recorded_ones_one_to_one(
    now: tuple[str, str], said: tuple[Any, ...], fidelities: list[str]
):
    def asks(made: HandMade, ids: tuple[str, str], *fields: dict[str, Any]) -> HandMade:
        made.start()
        for id, more in zip(ids, fields, strict=True):
            made.chat(f'{{"id":"{id}"}}'.encode(), (ANSWER,), **more)
        return made.exit(0)

    recorded = asks(HandMade(), (ONE, TWO), {}, {})
    fields = [
        stated(recorded, number, "volatile")
        | ({} if pair is None else {a.PLAYHEAD_VOLATILE_PAIRS: text_of([Pair(*pair, "uuid:4")])})
        for number, pair in enumerate(said)
    ]
    replay = asks(replayed(recorded), now, *fields)
    report = report_of(recorded, replay)
    counts = {one: fidelities.count(one) for one in ("volatile", "changed")}
    assert {one: report.count(Fidelity(one)) for one in counts} == counts
    assert report.verdict == ("diverged" if "changed" in fidelities else "volatile")


def test_messages_may_differ_in_what_was_handed_out_where_the_request_does_not():
    def messages(made: HandMade, id: str, *pairs: Pair, **stated: Any) -> HandMade:
        call = ExchangeId(MAIN, "websocket", 0)
        made.start()
        asked = {a.PLAYHEAD_ASK_KEY: "GET ws://provider/live", **stated}
        made.fact(e.PLAYHEAD_EXCHANGE_REQUEST, exchange=call, attributes=asked, body=Content.of(b""))
        out: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out"}
        for text, more in (("hello", ()), (f'{{"id":"{id}"}}', pairs)):
            at = out | ({a.PLAYHEAD_VOLATILE_PAIRS: text_of(more)} if more else {})
            body = Content.chunk(text.encode())
            made.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, attributes=at, body=body)
        made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes={a.PLAYHEAD_END_HOW: "complete"})
        return made.exit(0)

    recorded = messages(HandMade(), ONE)
    said = stated(recorded, 0, "volatile")
    found = report_of(recorded, messages(replayed(recorded), TWO, Pair(ONE, TWO, "uuid:4"), **said))
    assert (found.verdict, found.count(Fidelity.VOLATILE)) == ("volatile", 1)
    found = report_of(recorded, messages(replayed(recorded), TWO, **said))
    assert (found.verdict, found.count(Fidelity.CHANGED)) == ("diverged", 1)
