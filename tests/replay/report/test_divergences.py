"""What each divergence says, and where it stands; what the report notes beside them."""

from typing import Any

import pytest
from support.tapes.handmade import MAIN, NOW_INSTANCE, NOW_TRACE, HandMade

from playhead_core.boundaries import BOUNDARIES, CAUSAL, EXCHANGES, STRICT, Level, has
from playhead_core.facts import Content, Delivery, ErrorRecord, ExchangeId, Fidelity, digest_of
from playhead_core.process.module_coverage import REPEATED, UNHELD
from playhead_replay import Run
from playhead_replay.report.compare import compare
from playhead_replay.report.report import Divergence, Report
from playhead_replay.run.outputs import Outputs
from playhead_semconv import attributes as a
from playhead_semconv import events as e

WORKER = 2
FIRST, SECOND, THIRD = b'{"n":1}', b'{"n":2}', b'{"n":3}'


def made_now() -> HandMade:
    return HandMade(NOW_INSTANCE, NOW_TRACE)


def report_of(recorded: HandMade, now: HandMade) -> Report:
    return compare(recorded.tape(), now.tape(), Run.of_tape(recorded.tape(), name="refund-7"))


def two_steps(made: HandMade, **start: Any) -> HandMade:
    made.start(**start)
    made.chat(FIRST)
    made.chat(SECOND)
    return made


def effect(made: HandMade, kind: str, target: str = "", body: bytes = b"", **more: Any) -> HandMade:
    at = {a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: target, **more}
    made.fact(e.PLAYHEAD_EFFECT, attributes=at, body=Content.chunk(body))
    return made


def lane(made: HandMade, number: int, name: str) -> None:
    at = {a.PLAYHEAD_LANE_NAME: name, a.PLAYHEAD_LANE_PARENT: "main"}
    made.fact(e.PLAYHEAD_LANE, number, attributes=at)


def read(made: HandMade, kind: str, at_lane: int = MAIN) -> None:
    made.fact(
        e.PLAYHEAD_READ, at_lane, attributes={a.PLAYHEAD_READ_KIND: kind}, body=Content.chunk(b"1")
    )


def only(report: Report) -> Divergence:
    (found,) = report.divergences
    return found


def test_a_run_that_was_killed_is_not_one_that_ended():
    report = report_of(two_steps(HandMade()), two_steps(made_now()).exit(0))
    found = only(report)
    assert (found.kind, found.place) == ("exit", "after step 2")
    assert found.difference is not None
    assert (found.difference.tape, found.difference.now) == ("killed", "0")
    assert "note: the tape ends where the run was killed" in list(report.lines())
    both = report_of(two_steps(HandMade()), two_steps(made_now()))
    assert both.divergences == []
    ended = report_of(two_steps(HandMade()).exit(0), two_steps(made_now()).exit(0))
    assert ended.notes == []


@pytest.mark.parametrize(("steps", "where"), [(0, "before step 1"), (1, "after step 1")])
def test_a_standstill_names_where_and_who_waits(steps: int, where: str):
    recorded = two_steps(HandMade()).exit(0)
    now = made_now().start()
    for body in (FIRST, SECOND)[:steps]:
        now.chat(body)
    waiting = ["MainThread in queue.get", "worker in recv"]
    now.fact(e.PLAYHEAD_STANDSTILL, attributes={a.PLAYHEAD_STANDSTILL_THREADS: waiting})
    said = "MainThread in queue.get; worker in recv"
    assert report_of(recorded, now).notes == [
        f"the replay was stopped {where}, because no thread could continue: {said}"
    ]


def test_what_was_done_again_for_real_is_named_twenty_at_most():
    recorded = HandMade().start().exit(0)
    for count, more in ((2, ""), (20, ""), (21, " and 1 more")):
        now = made_now().start()
        for number in range(count):
            effect(now, REPEATED, f"f{number}")
        report = report_of(recorded, now.exit(0))
        named = ", ".join(f"f{number}" for number in range(min(count, 20)))
        assert report.notes == [f"repeated for real, as you allowed: {named}{more}"]
        assert report.divergences == []


@pytest.mark.parametrize(
    ("library", "place", "who"),
    [
        ("psycopg", "agent.py:12", "psycopg in agent.py:12: "),
        ("psycopg", "", "psycopg: "),
        ("", "agent.py:12", "agent.py:12: "),
        ("", "", ""),
    ],
)
def test_what_nothing_held_back_is_live_and_says_whose_doing_it_is(library: str, place: str, who: str):
    recorded, now = two_steps(HandMade()).exit(0), made_now().start()
    now.chat(FIRST)
    whose = {a.PLAYHEAD_EFFECT_LIBRARY: library, a.PLAYHEAD_EFFECT_PLACE: place}
    effect(now, UNHELD, "libpq.so", **{name: said for name, said in whose.items() if said})
    seq = now.facts[-1].seq
    now.chat(SECOND)
    found = only(report_of(recorded, now.exit(0)))
    assert (found.kind, found.what) == ("live", "not isolated: libpq.so")
    assert found.detail == f"{who}no boundary records it, and no namespace isolated it"
    assert (found.place, found.seq) == ("after step 1", seq)
    refused = {a.PLAYHEAD_FIDELITY: "blocked", **{key: one for key, one in whose.items() if one}}
    again = two_steps(made_now())
    effect(again, "socket", "10.0.0.1:5432", **refused)
    seq = again.facts[-1].seq
    found = only(report_of(recorded, again.exit(0)))
    assert (found.what, found.seq, found.place) == ("blocked socket 10.0.0.1:5432", seq, "after step 2")
    assert found.detail == f"{who}the tape has no answer to it"


def test_what_was_let_in_out_of_order_names_its_lane_or_its_exchange():
    recorded, now = two_steps(HandMade()).exit(0), made_now().start()
    now.chat(FIRST)
    lane(now, WORKER, "worker")
    unnamed = 0xABC
    for number, id in (
        (WORKER, None),
        (unnamed, None),
        (WORKER, ExchangeId(MAIN, "http", 0)),
    ):
        now.fact(e.PLAYHEAD_MOVED, number, exchange=id)
    now.chat(SECOND)
    report = report_of(recorded, now.exit(0))
    assert [(one.kind, one.what, one.place) for one in report.divergences] == [
        ("moved", "moved worker", "after step 1"),
        ("moved", "moved 0000000000000abc", "after step 1"),
        ("moved", "moved http worker#0", "after step 1"),
    ]
    assert {one.detail for one in report.divergences} == {
        "delivered out of order, because no other thread could continue"
    }
    assert [one.seq for one in report.divergences] == [
        fact.seq for fact in now.facts if fact.name == e.PLAYHEAD_MOVED
    ]


def test_an_answer_to_what_was_asked_out_of_order_is_told_once():
    recorded, now = HandMade().start(), made_now().start()
    recorded.exchange(request=FIRST, lane=MAIN)
    lane(now, WORKER, "worker")
    id = now.exchange(request=FIRST, lane=WORKER)
    now.fact(e.PLAYHEAD_MOVED, WORKER, exchange=id)
    report = report_of(recorded.exit(0), now.exit(0))
    found = only(report)
    key = "POST http://provider/v1/chat/completions"
    assert (found.kind, found.what) == ("moved", f"moved worker#0 {key}")
    assert found.detail == "answered by main#0, but requested in another lane or order"
    assert report.count(Fidelity.MOVED) == 1


def test_a_refused_request_elsewhere_stands_after_what_had_been_asked_before():
    recorded = two_steps(HandMade())
    recorded.chat(THIRD)
    now = made_now().start()
    now.chat(FIRST)
    lane(now, WORKER, "worker")
    refused = ErrorRecord("playhead_core.errors", "ExchangeUnmatched", "no recording\nof this")
    stated: dict[str, Any] = {a.PLAYHEAD_FIDELITY: "blocked"}
    # Nearest is step 3, by its body; it was made when step 1 had been asked for.
    now.chat(
        THIRD[:-2] + b"9}",
        status=0,
        how="error",
        error=refused,
        lane=WORKER,
        **stated,
    )
    report = report_of(recorded.exit(0), now.exit(0))
    found = report.first_divergence
    assert found is not None
    assert (found.kind, found.place, found.nearest) == ("blocked", "after step 1", "main#1")
    assert found.detail == ""  # it says what is nearest
    assert found.seq == next(one for one in now.facts if one.exchange and one.lane == WORKER).seq


def test_a_refused_request_of_a_kind_that_the_tape_lacks_says_why():
    recorded, now = two_steps(HandMade()).exit(0), two_steps(made_now())
    call = ExchangeId(MAIN, "grpc", 0)
    asked = {a.PLAYHEAD_ASK_KEY: "grpc.health/Check", a.PLAYHEAD_FIDELITY: "blocked"}
    now.fact(e.PLAYHEAD_EXCHANGE_REQUEST, exchange=call, attributes=asked, body=Content.of(b""))
    failed = {
        a.PLAYHEAD_END_HOW: "error",
        a.PLAYHEAD_ERROR_MODULE: "playhead_core.errors",
        a.PLAYHEAD_ERROR_QUALNAME: "ExchangeUnmatched",
        a.PLAYHEAD_ERROR_MESSAGE: "nothing answers\nat all",
    }
    now.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes=failed)
    found = only(report_of(recorded, now.exit(0)))
    assert (found.kind, found.detail, found.nearest) == ("blocked", "nothing answers", "")
    assert (found.what, found.place) == ("blocked main#grpc:0 grpc.health/Check", "after step 2")


def test_reads_that_the_tape_lacks_are_live_in_their_lane_from_the_first_one_on():
    def reads(made: HandMade, mains: int, workers: int, files: int) -> HandMade:
        two_steps(made)
        lane(made, WORKER, "worker")
        for count, at_lane in ((mains, MAIN), (workers, WORKER)):
            for _ in range(count):
                read(made, "clock/time.time", at_lane)
        for _ in range(files):
            read(made, "entropy/os.urandom")
        read(made, "entropy/random.state")
        read(made, "file/content a.bin")
        return made.exit(0)

    recorded, now = reads(HandMade(), 2, 3, 1), reads(made_now(), 4, 1, 1)
    report = report_of(recorded, now)
    clocks = {Fidelity.EXACT: 3, Fidelity.LIVE: 2, Fidelity.UNUSED: 2}
    assert report.reads == {"clock": clocks, "entropy": {Fidelity.EXACT: 1}}
    found = only(report)
    third = [one for one in now.facts if one.name == e.PLAYHEAD_READ][2]
    assert (found.kind, found.what, found.seq) == ("live", "live time.time in main", third.seq)
    assert found.detail == "the tape holds 2, the program read 2 more"
    assert found.place == "after step 2"
    now.facts.pop()
    read(now, "clock/time.monotonic", 0xABC)
    unnamed = report_of(recorded, now.exit(0)).divergences[-1]
    assert unnamed.what == "live time.monotonic in 0000000000000abc"


def test_edits_that_the_program_got_are_named_with_their_steps():
    recorded, now = two_steps(HandMade()), made_now().start()
    recorded.exchange("GET http://shop/a", b"")
    sent: dict[str, Any] = {a.PLAYHEAD_EDITED_DIGEST: "00" * 32}
    got: dict[str, Any] = {a.PLAYHEAD_EDITED_ANSWER: "call-1"}
    now.chat(FIRST, **sent)
    now.chat(SECOND, **got)
    edited: dict[str, Any] = {a.PLAYHEAD_EDITED_ANSWER: "call-2"}
    now.exchange("GET http://shop/a", b"", **edited)
    said = {a.PLAYHEAD_STATE_NAME: "plan", a.PLAYHEAD_EDITED_DIGEST: "00" * 32}
    for each in (recorded, now):
        state = ExchangeId(MAIN, "state", 0)
        each.fact(e.PLAYHEAD_STATE, exchange=state, attributes=said, body=Content.of(b"1"))
    report = report_of(recorded.exit(0), now.exit(0))
    assert report.edited == [
        "request of step 1",
        "answer of step 2",
        "answer of main#2",
        "state plan",
    ]
    assert report.verdict == "identical"
    assert list(report.lines())[-1] == "identical, based on an edit (exit 0)"


def test_the_first_effect_that_differs_is_told_with_both_sides():
    digests = {a.PLAYHEAD_FILE_DIGEST: "aa"}, {a.PLAYHEAD_FILE_DIGEST: "bb"}
    for one, other, path, sides in (
        (("file.write", "a"), ("file.write", "b"), "effect", ("file.write a", "file.write b")),
        (("file.write", "a"), ("file.mkdir", "a"), "effect", ("file.write a", "file.mkdir a")),
        (("file.write", "a"), None, "effect", ("file.write a", "(absent)")),
        (None, ("file.write", "a"), "effect", ("(absent)", "file.write a")),
    ):
        recorded, now = two_steps(HandMade()), two_steps(made_now())
        for made, what in ((recorded, one), (now, other)):
            effect(made, "file.write", "same")
            if what is not None:
                effect(made, *what)
            made.exit(0)
        report = report_of(recorded, now)
        found = only(report)
        assert found.difference is not None
        assert (found.difference.path, found.difference.tape, found.difference.now) == (path, *sides)
        assert found.what == f"effect {' '.join(one or other or ())}"
        assert (found.kind, found.place) == ("effect", "after step 2")
        check = next(check for check in report.outputs if check.name == "effects")
        counts = [str(2 if what else 1) for what in (one, other)]
        assert (check.same, [check.tape, check.now]) == (False, counts)
    recorded, now = two_steps(HandMade()), two_steps(made_now())
    for made, digest in zip((recorded, now), digests, strict=True):
        effect(made, "file.write", "big.bin", b"", **digest)
        made.exit(0)
    found = only(report_of(recorded, now))
    assert found.difference is not None
    assert (found.difference.path, found.difference.tape, found.difference.now) == (
        "digest of the content",
        "aa",
        "bb",
    )


def test_who_did_not_end_is_not_who_failed():
    ways: list[tuple[str, ErrorRecord | None, str]] = [
        ("complete", None, "complete"),
        ("error", ErrorRecord("builtins", "ValueError", "no"), "error: ValueError: no"),
        ("error", ErrorRecord("asyncio", "CancelledError", "<Task 0x1>"), "error: CancelledError"),
    ]
    for how, error, said in ways:
        recorded, now = HandMade().start(), made_now().start()
        recorded.exchange(how=how, error=error)
        call = now.exchange(answered=False)
        head = {a.HTTP_RESPONSE_STATUS_CODE: 200}
        now.fact(e.PLAYHEAD_EXCHANGE_RESPONSE, exchange=call, attributes=head)
        now.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, body=Content.chunk(b"{}"))
        found = only(report_of(recorded.exit(0), now.exit(0)))
        assert found.difference is not None
        assert (found.difference.path, found.difference.tape, found.difference.now) == (
            "end",
            said,
            "unanswered",
        )


def test_recorded_bytes_that_were_changed_are_no_answer_as_recorded():
    recorded, now = HandMade().start(), made_now().start()
    for made in (recorded, now):
        call = made.exchange(answered=False)
        made.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, body=Content.chunk(b"pay 1"))
        at = {a.PLAYHEAD_END_HOW: "complete", a.PLAYHEAD_END_DIGEST: digest_of(b"pay 9").hex()}
        made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes=at)
    found = only(report_of(recorded.exit(0), now.exit(0)))
    assert found.difference is not None
    assert found.difference.path == "digest of the recorded bytes"
    assert found.difference.tape == digest_of(b"pay 9").hex()[:16]
    assert found.difference.now == digest_of(b"pay 1").hex()[:16]


def started(level: Level, **more: Any) -> dict[str, Any]:
    """The attributes of a start that tells the boundaries of its level."""
    kept = [row.name for row in BOUNDARIES if has(level, row)]
    return {a.PLAYHEAD_RUN_LEVEL: level, a.PLAYHEAD_RUN_BOUNDARIES: kept, **more}


def test_a_recording_that_keeps_less_says_what_another_level_has():
    cases: list[tuple[Level, bool]] = [(STRICT, True), (CAUSAL, True), (EXCHANGES, False)]
    for level, kept in cases:
        start = started(level)
        recorded = two_steps(HandMade(), **start).exit(0)
        report = report_of(recorded, two_steps(made_now(), **start).exit(0))
        named = [one.name for one in report.outputs]
        assert ("stdout" in named, "effects" in named) == (kept, kept)
        if kept:
            assert report.unkept == {}
        else:
            assert {"output", "clock", "entropy"} <= set(report.unkept)
            assert set(report.unkept.values()) == {"causal"}


def test_a_level_and_what_was_added_to_it_are_told_apart():
    start = started(EXCHANGES)
    start[a.PLAYHEAD_RUN_BOUNDARIES] = [*start[a.PLAYHEAD_RUN_BOUNDARIES], "output"]
    recorded = two_steps(HandMade(), **start).exit(0)
    report = report_of(recorded, two_steps(made_now(), **start).exit(0))
    assert "output" not in report.unkept
    assert "stdout" in [one.name for one in report.outputs]


def test_the_seed_of_hashes_is_a_cause_only_where_something_differs_and_no_level_holds_it():
    note = "PYTHONHASHSEED was random in the recording: the order of sets may differ"
    cases: list[tuple[Level, str, int, bool]] = [
        (EXCHANGES, "random", 1, True),
        (EXCHANGES, "random", 0, False),
        (EXCHANGES, "0", 1, False),
        (STRICT, "random", 1, False),
    ]
    for level, seed, code, noted in cases:
        start = started(level, **{a.PLAYHEAD_RUN_HASH_SEED: seed})
        recorded = two_steps(HandMade(), **start).exit(0)
        report = report_of(recorded, two_steps(made_now(), **start).exit(code))
        assert (note in report.notes) is noted, (level, seed, code)


def test_a_stream_is_placed_by_the_fact_that_wrote_the_byte():
    recorded, now = HandMade().start(), made_now().start()
    for made, last in ((recorded, "three\n"), (now, "thrEe\n")):
        made.say("one\n")
        made.chat(FIRST)
        made.say("two\n")
        made.chat(SECOND)
        made.say(last)
        made.say("warn\n", "stderr")
        made.exit(0)
    found = only(report_of(recorded, now))
    seqs = [fact.seq for fact in now.facts if fact.name == e.PLAYHEAD_EFFECT]
    assert (found.kind, found.place, found.seq) == ("stdout", "after step 2", seqs[2])
    streams = Outputs.of_tape(now.tape())
    assert streams.stdout.data == b"one\ntwo\nthrEe\n"
    assert streams.stderr.data == b"warn\n"
    ends = [streams.stdout.seq_at(at) for at in (0, 3, 4, 7, 8, 13)]
    assert ends == [seqs[0], seqs[0], seqs[1], seqs[1], seqs[2], seqs[2]]
    assert streams.stdout.seq_at(14) is None


def test_the_last_lines_of_stderr_are_of_stderr_and_of_the_end():
    made = HandMade().start()
    for number in range(40):
        made.say(f"out {number}\n").say(f"\nline {number}\n", "stderr")
    tape = made.exit(0).tape()
    assert Outputs.last_of_stderr(tape, 2) == ["line 38", "line 39"]
    assert Outputs.last_of_stderr(tape, 1) == ["line 39"]


def test_the_last_lines_of_stderr_may_begin_within_a_letter():
    made = HandMade().start()
    for piece in ("one ä\n".encode()[:-2], "ä\n".encode()[1:], *[b"."] * 7):
        effect(made, "stderr", body=piece)
    tape = made.exit(0).tape()
    assert Outputs.last_of_stderr(tape, 1) == ["......."]
    assert Outputs.last_of_stderr(tape, 2) == ["one ä", "......."]


def test_an_effect_without_fields_has_empty_ones_and_an_exit_has_its_time():
    made = HandMade().start()
    made.fact(e.PLAYHEAD_EFFECT, attributes={a.PLAYHEAD_EFFECT_KIND: "signal"})
    made.wait(3)
    found = Outputs.of_tape(made.exit(4).tape())
    (one,) = found.effects
    assert (one.kind, one.target, one.digest, one.body) == ("signal", "", "", b"")
    assert found.exit is not None
    assert (found.exit.code, found.exit.time_ns) == (4, made.at_ns)
    assert Outputs.exit_of(made.tape()) == found.exit
    assert Outputs.exit_of(HandMade().start().tape()) is None


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ((b"a", b"b"), (b"a",), ("message 2", "b", "(absent)")),
        ((b"a",), (b"a", b"b"), ("message 2", "(absent)", "b")),
        ((b"a", b"b"), (b"a", b"c"), ("message 2 line 1", "b", "c")),
    ],
)
def test_messages_that_were_sent_are_compared_one_by_one(
    left: tuple[bytes, ...], right: tuple[bytes, ...], found: tuple[str, str, str]
):
    def messages(made: HandMade, sent: tuple[bytes, ...]) -> HandMade:
        call = ExchangeId(MAIN, "websocket", 0)
        made.start()
        asked = {a.PLAYHEAD_ASK_KEY: "GET ws://provider/live"}
        made.fact(e.PLAYHEAD_EXCHANGE_REQUEST, exchange=call, attributes=asked, body=Content.of(b""))
        for one in sent:
            out = {a.PLAYHEAD_EXCHANGE_DIRECTION: "out"}
            body = Content.chunk(one)
            made.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, attributes=out, body=body)
        ended = {a.PLAYHEAD_END_HOW: "complete"}
        made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes=ended, delivery=Delivery(1, 0))
        return made.exit(0)

    report = report_of(messages(HandMade(), left), messages(made_now(), right))
    one = only(report)
    assert one.difference is not None
    assert (one.kind, one.difference.path, one.difference.tape, one.difference.now) == (
        "request",
        *found,
    )


def test_without_a_statement_the_same_place_comes_before_the_same_request_elsewhere():
    recorded, now = HandMade().start(), made_now().start()
    for _ in range(2):
        recorded.exchange(request=FIRST)
    now.exchange(request=SECOND)  # the same place, another body
    now.exchange(request=FIRST)
    report = report_of(recorded.exit(0), now.exit(0))
    counts = {one: report.count(one) for one in (Fidelity.EXACT, Fidelity.CHANGED, Fidelity.MOVED)}
    assert counts == {Fidelity.EXACT: 1, Fidelity.CHANGED: 1, Fidelity.MOVED: 0}
    assert report.unused == []
