"""Which recording answers a request, by what the tape says of it."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.tapes.handmade import MAIN, HandMade

from playhead_core.difference import Difference
from playhead_core.facts import (
    Ask,
    Content,
    Delivery,
    ErrorRecord,
    Exchange,
    ExchangeId,
    Fidelity,
    digest_of,
)
from playhead_core.rerun.plans import Reopen
from playhead_instrumentation.recorder.decision import Decision, Live, Played, Refused
from playhead_instrumentation.recorder.options import Allowed
from playhead_instrumentation.replayer.matching import is_encoded
from playhead_instrumentation.replayer.player import CANDIDATES, Player
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KEY = "POST http://provider/v1/chat/completions"
LOGIN = b'{"user": "me", "password": "[redacted]"}'


def asked(player: Player, body: bytes, keyed: str, ordinal: int = 0) -> Decision:
    ask = Ask("http", KEY, Content.of(body), details={a.PLAYHEAD_REDACTED_DIGEST: keyed})
    return player.decide(ExchangeId(MAIN, "http", ordinal), ask, body)


def test_a_request_is_found_by_what_was_redacted_in_it():
    """Where redaction finds more at the replay than it found when recorded, the bodies differ."""
    made = HandMade().start()
    made.exchange(KEY, LOGIN, **said(a.PLAYHEAD_REDACTED_DIGEST, "11" * 32))
    found = asked(Player(made.exit(0).tape()), b'{"user": "[redacted]"}', "11" * 32)
    assert isinstance(found, Played) and found.fidelity is Fidelity.EXACT


def test_a_request_with_other_credentials_is_the_same_and_with_both_others_none():
    made = HandMade().start()
    made.exchange(KEY, LOGIN, **said(a.PLAYHEAD_REDACTED_DIGEST, "11" * 32))
    player = Player(made.exit(0).tape())
    assert isinstance(asked(player, b"else", "22" * 32), Refused)
    assert isinstance(asked(player, LOGIN, "22" * 32), Played)
    assert isinstance(asked(player, LOGIN, "11" * 32, 1), Refused)  # it answers once


def test_the_same_json_in_another_order_is_the_same_request():
    made = HandMade().start()
    made.exchange(KEY, b'{"a": 1, "b": {"c": 2, "d": 3}}')
    player = Player(made.exit(0).tape())
    assert isinstance(asked(player, b'{"b":{"d":3,"c":2},"a":1}', ""), Played)


def test_a_request_that_is_made_once_more_than_recorded_says_so():
    made = HandMade().start()
    made.exchange(KEY, LOGIN)
    player = Player(made.exit(0).tape())
    assert isinstance(asked(player, LOGIN, ""), Played)
    found = asked(player, LOGIN, "", 1)
    assert isinstance(found, Refused)
    assert found.error.what == f"main#0 matches {KEY}; every recording of it is used"
    assert found.error.hint == "the program asks once more than the tape"


OTHER = 2


def said(name: str, value: str) -> dict[str, Any]:
    """An attribute of a request, beside the parameters that have types."""
    return {name: value}


def named(made: HandMade, lane: int, name: str) -> None:
    at = {a.PLAYHEAD_LANE_NAME: name, a.PLAYHEAD_LANE_PARENT: "main"}
    made.fact(e.PLAYHEAD_LANE, lane, attributes=at)


def question(body: bytes, key: str = KEY, kind: str = "http", **details: object) -> Ask:
    return Ask(kind, key, Content.of(body), details=details)


def refused(player: Player, ask: Ask, body: bytes, lane: int = MAIN, ordinal: int = 0) -> Refused:
    found = player.decide(ExchangeId(lane, ask.kind, ordinal), ask, body)
    assert isinstance(found, Refused)
    return found


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        (b'[1, {"b": 2, "a": 3}]', b'[1,{"a":3,"b":2}]', True),
        (b'{"a": [1, 2]}', b'{"a":[2,1]}', False),
        (b'{"a": 1', b'{"a":1', False),
        (b"a b", b"a  b", False),
    ],
)
def test_json_that_says_the_same_is_the_same_and_nothing_else_is(
    recorded: bytes, now: bytes, same: bool
):
    made = HandMade().start()
    made.exchange(KEY, recorded)
    found = asked(Player(made.exit(0).tape()), now, "")
    assert isinstance(found, Played) is same


def test_a_recording_that_says_the_same_in_other_bytes_answers_once():
    made = HandMade().start()
    for body in (b'{"a": 1}', b'{"a":1}'):
        made.exchange(KEY, body)
    made.exchange("GET http://provider/other", b'{"a":  1}')
    player = Player(made.exit(0).tape())
    origins: list[int] = []
    for ordinal in range(2):
        found = asked(player, b'{ "a": 1 }', "", ordinal)
        assert isinstance(found, Played)
        origins.append(found.exchange.id.ordinal)
    assert origins == [0, 1]
    assert isinstance(asked(player, b'{ "a": 1 }', "", 2), Refused)
    assert [one.id.ordinal for one in player.left()] == [2]


def test_the_lane_that_asks_comes_first_and_another_lane_is_moved():
    made = HandMade().start()
    named(made, OTHER, "worker")
    made.exchange(KEY, LOGIN, lane=OTHER)
    made.exchange(KEY, LOGIN)
    made.exchange(KEY, LOGIN, lane=OTHER)
    player = Player(made.exit(0).tape())
    first, second = asked(player, LOGIN, ""), asked(player, LOGIN, "", 1)
    assert isinstance(first, Played) and isinstance(second, Played)
    assert (first.exchange.id.lane, first.fidelity) == (MAIN, Fidelity.EXACT)
    assert (second.exchange.id, second.fidelity) == (ExchangeId(OTHER, "http", 0), Fidelity.MOVED)


def test_at_the_level_of_exchanges_another_lane_is_not_moved():
    made = HandMade().start(**said(a.PLAYHEAD_RUN_LEVEL, "exchanges"))
    made.exchange(KEY, LOGIN, lane=OTHER)
    found = asked(Player(made.exit(0).tape()), LOGIN, "")
    assert isinstance(found, Played)
    assert found.fidelity is Fidelity.EXACT


def test_a_host_that_is_allowed_is_asked_for_real_where_nothing_answers():
    made = HandMade().start()
    made.exchange("GET http://shop:8080/a", b"")
    allowed = Allowed(hosts=frozenset({"shop"}))
    for key, live in (
        ("GET http://shop:8080/b", True),
        ("GET https://shop/b", True),
        ("GET http://shop.example/b", False),
        ("GET http://other/b?host=shop", False),
        ("GET", False),
    ):
        player = Player(made.tape(), allowed)
        assert (
            isinstance(player.decide(ExchangeId(MAIN, "http", 0), question(b"", key), b""), Live) is live
        )
    player = Player(made.tape(), allowed)
    found = player.decide(ExchangeId(MAIN, "http", 0), question(b"", "GET http://shop:8080/a"), b"")
    assert isinstance(found, Played)  # what the tape answers is never asked for real
    ask = question(b"", "GET http://shop:8080/b", kind="grpc")
    assert isinstance(player.decide(ExchangeId(MAIN, "grpc", 0), ask, b""), Refused)


def test_a_refusal_names_the_nearest_recording_and_the_first_difference():
    made = HandMade().start()
    named(made, OTHER, "worker")
    made.exchange("GET http://provider/models", b"")
    made.exchange(KEY, b'{"n":1,"m":[1,2]}')
    made.exchange(KEY, b'{"n":1}', lane=OTHER)
    tape = made.exit(0).tape()
    found = refused(Player(tape), question(b""), b'{"n": 1, "m": [1, 3]}', MAIN, 1)
    assert found.error.what == f"the tape has no answer to {KEY}"
    assert found.error.cause == "nearest is main#1; first difference at $.m[1]: tape 2, now 3"
    assert found.difference == Difference("$.m[1]", "2", "3")
    found = refused(Player(tape), question(b"{}", "POST http://provider/v2"), b"{}", OTHER, 0)
    assert found.difference == Difference("request line", KEY, "POST http://provider/v2")
    assert found.error.cause is not None and found.error.cause.startswith("nearest is worker#0; ")
    found = refused(Player(tape), question(b"{}", kind="grpc"), b"{}")
    assert (found.error.cause, found.difference) == ("the tape holds no grpc exchange", None)


def test_of_recordings_as_like_the_unused_and_the_nearer_one_is_named():
    made = HandMade().start()
    for number in range(4):
        made.exchange(KEY, b'{"n":%d}' % number)
    player = Player(made.exit(0).tape())
    assert isinstance(asked(player, b'{"n":2}', ""), Played)
    found = refused(player, question(b'{"n":9}'), b'{"n":9}', MAIN, 7)
    assert found.error.cause is not None and found.error.cause.startswith("nearest is main#3; ")
    assert isinstance(asked(player, b'{"n":3}', "", 1), Played)
    found = refused(player, question(b'{"n":9}'), b'{"n":9}', MAIN, 7)
    assert found.error.cause is not None and found.error.cause.startswith("nearest is main#1; ")
    # The same place counts more than being unused, a lane without a name is named by its number.
    found = refused(player, question(b'{"n":9}'), b'{"n":9}', MAIN, 3)
    assert found.error.cause is not None and found.error.cause.startswith("nearest is main#3; ")


def test_what_is_unasked_goes_on_as_recordings_are_taken():
    made = HandMade().start()
    times: list[int] = []
    for number in range(4):
        times.append(made.at_ns)
        made.exchange(KEY, b'{"n":%d}' % number)
    player = Player(made.exit(0).tape())
    unasked: list[int | None] = [player.unasked_ns()]
    for ordinal, number in enumerate((0, 2, 1, 3)):
        found = asked(player, b'{"n":%d}' % number, "", ordinal)
        assert isinstance(found, Played)
        assert found.varied == player.varied
        unasked.append(player.unasked_ns())
        left = [one.time_ns for one in player.left()]
        assert left[:1] == ([] if player.unasked_ns() is None else [player.unasked_ns()])
    assert unasked == [times[0], times[1], times[1], times[3], None]
    assert [one.id.ordinal for one in player.exchanges()] == [0, 1, 2, 3]


def test_so_many_recordings_are_compared_at_most():
    made = HandMade().start()
    for number in range(CANDIDATES + 1):
        made.exchange(KEY, b'{"n":%d}' % number)
    player = Player(made.exit(0).tape())
    assert player._unused("http", MAIN) == list(range(CANDIDATES))
    assert player._unused("grpc", MAIN) == []


def test_a_tool_that_is_allowed_runs_in_the_place_of_its_next_recording():
    made = HandMade().start()
    for number in range(2):
        call = ExchangeId(MAIN, "tool", number)
        at = {a.PLAYHEAD_ASK_KEY: "search"}
        made.fact(e.PLAYHEAD_EXCHANGE_REQUEST, exchange=call, attributes=at, body=Content.of(b"{}"))
        ended = {a.PLAYHEAD_END_HOW: "complete"}
        made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, attributes=ended)
    player = Player(made.exit(0).tape(), Allowed(tools=frozenset({"search"})))
    found = [
        player.decide(ExchangeId(MAIN, "tool", number), question(b"9", "search", "tool"), b"9")
        for number in range(3)
    ]
    instead: list[int | None] = []
    for one in found:
        assert isinstance(one, Live)
        instead.append(None if one.instead_of is None else one.instead_of.id.ordinal)
        assert one.instance == (b"" if one.instead_of is None else made.instance)
    assert instead == [0, 1, None]
    assert list(player.left()) == []


def test_a_request_that_a_fork_edited_is_found_by_what_the_program_had_made():
    made = HandMade().start()
    sent, own = b'{"n":"edited"}', b'{"n":"own"}'
    made.exchange(KEY, sent, **said(a.PLAYHEAD_EDITED_DIGEST, digest_of(own).hex()))
    for body in (own, sent):
        assert isinstance(asked(Player(made.tape()), body, ""), Played)
    assert isinstance(asked(Player(made.tape()), b'{"n":"else"}', ""), Refused)


@pytest.mark.parametrize(
    ("how", "error", "left"),
    [
        ("abandoned", None, True),
        ("complete", None, False),
        ("error", ErrorRecord("builtins", "ValueError", "no"), False),
        ("error", ErrorRecord("asyncio.exceptions", "CancelledError", ""), True),
    ],
)
def test_the_end_of_what_the_program_left_enters_when_it_left(
    how: str, error: ErrorRecord | None, left: bool
):
    made = HandMade().start()
    made.exchange(KEY, LOGIN, (b"a", b"b"), how=how, error=error)
    found = asked(Player(made.exit(0).tape()), LOGIN, "")
    assert isinstance(found, Played)
    exchange = found.exchange
    assert exchange.end is not None
    dues = [found.due(index) for index in range(4)]
    given = [exchange.head_delivery, *(part.delivery for part in exchange.parts)]
    assert dues == [*given, None if left else exchange.end.delivery]
    assert found.left == (exchange.end.delivery if left else None)
    assert len(list(found.deliveries())) == 4
    assert next(iter(found.deliveries(2))) == exchange.parts[1].delivery
    assert not found.at_once


def test_an_answer_that_came_whole_was_there_at_once():
    made = HandMade().start()
    call = made.exchange(KEY, LOGIN, answered=False)
    whole = Delivery(1, 0)
    head = {a.HTTP_RESPONSE_STATUS_CODE: 200}
    made.fact(e.PLAYHEAD_EXCHANGE_RESPONSE, exchange=call, delivery=whole, attributes=head)
    made.fact(e.PLAYHEAD_EXCHANGE_DATA, exchange=call, delivery=whole, body=Content.chunk(b"{}"))
    ended = {a.PLAYHEAD_END_HOW: "complete"}
    made.fact(e.PLAYHEAD_EXCHANGE_END, exchange=call, delivery=whole, attributes=ended)
    found = asked(Player(made.exit(0).tape()), LOGIN, "")
    assert isinstance(found, Played)
    assert found.at_once
    assert [found.part(0), found.left] == [b"{}", None]


def test_what_is_compressed_is_played_as_it_was():
    for headers, encoded in (
        (["Content-Encoding", "gzip"], True),
        (["content-type", "a", "content-encoding", "br"], True),
        (["content-type", "content-encoding"], False),
    ):
        exchange = Exchange(ExchangeId(MAIN, "http", 0), question(b""), 0)
        exchange.head = {a.PLAYHEAD_HTTP_HEADERS: headers}
        assert is_encoded(exchange) is encoded


def body_with(value: bytes, more: str = "") -> bytes:
    return f'{{"id":"{value.hex()}"{more}}}'.encode()


@pytest.mark.parametrize("level", ["causal", "exchanges"])
def test_a_request_that_differs_in_what_the_replay_handed_out_is_found_in_its_lane_first(level: str):
    recorded, other, drawn, second = (bytes([number]) * 8 + bytes(range(8)) for number in (3, 4, 5, 6))
    made = HandMade().start(**{a.PLAYHEAD_RUN_LEVEL: level})
    made.exchange(KEY, body_with(other), lane=OTHER)
    made.exchange(KEY, body_with(recorded))
    player = Player(made.exit(0).tape())
    assert isinstance(asked(player, body_with(drawn), ""), Refused)  # nobody has handed that out
    player.handed.note_bytes(drawn)
    found = asked(player, body_with(drawn), "")
    assert isinstance(found, Played)
    assert (found.exchange.id, found.fidelity) == (ExchangeId(MAIN, "http", 0), Fidelity.VOLATILE)
    assert found.pairs is not None and drawn.hex() in found.pairs and recorded.hex() in found.pairs
    player.handed.note_bytes(second)
    found = asked(player, body_with(second), "", 1)
    if level == "exchanges":
        assert isinstance(found, Played)
        assert found.exchange.id == ExchangeId(OTHER, "http", 0)
    else:
        assert isinstance(found, Refused)


def test_a_refusal_passes_over_what_was_handed_out_and_names_the_real_difference():
    made = HandMade().start(**{a.PLAYHEAD_RUN_LEVEL: "exchanges"})
    recorded, drawn = bytes(range(16)), bytes(range(100, 116))
    made.exchange(KEY, body_with(recorded, ',"prompt":"pay 1"'))
    player = Player(made.exit(0).tape())
    player.handed.note_bytes(drawn)
    now = body_with(drawn, ',"prompt":"pay 9"')
    found = refused(player, question(now), now)
    assert found.difference == Difference("$.prompt", "pay 1", "pay 9")


def test_what_says_the_same_is_taken_from_the_lane_that_asks_first():
    made = HandMade().start()
    made.exchange(KEY, b'{"a": 1}', lane=OTHER)
    made.exchange(KEY, b'{"a":  1}')
    found = asked(Player(made.exit(0).tape()), b'{"a":1}', "")
    assert isinstance(found, Played)
    assert (found.exchange.id.lane, found.fidelity) == (MAIN, Fidelity.EXACT)


def test_a_player_knows_the_folder_the_level_and_the_ends_of_the_run():
    made = HandMade().start(cwd="/srv/agent", **{a.PLAYHEAD_RUN_LEVEL: "causal"})
    ended = Delivery(4, 1)
    at = {a.PLAYHEAD_LANE_NAME: "worker", a.PLAYHEAD_LANE_PARENT: "main"}
    made.fact(e.PLAYHEAD_LANE, OTHER, delivery=ended, attributes=at)
    woken = ExchangeId(MAIN, "sleep", 0)
    made.fact(e.PLAYHEAD_WAKE, exchange=woken, delivery=Delivery(3, 0))
    spun = {a.PLAYHEAD_SPIN_BATCH: 7, a.PLAYHEAD_SPIN_TICKS: 3}
    made.fact(e.PLAYHEAD_SPIN, attributes=spun)
    player = Player(made.tape())
    assert (player.cwd, player.level) == ("/srv/agent", "causal")
    assert player.lane_ends == {OTHER: ended}
    assert player.wakes == {woken: Delivery(3, 0)}
    assert player.spun == {7: 3}
    assert player.expects() is None
    without = Player(HandMade().tape())
    assert (without.cwd, without.unasked_ns(), list(without.left())) == ("", None, [])


@pytest.mark.parametrize(("reopen", "further"), [(None, False), ("again", True)])
def test_of_a_connection_that_goes_on_in_the_world_what_follows_the_tape_is_from_there(
    reopen: Reopen | None, further: bool
):
    made = HandMade().start()
    made.exchange(KEY, LOGIN)
    found = asked(Player(made.exit(0).tape()), LOGIN, "")
    assert isinstance(found, Played)
    played = replace(found, reopen=reopen)
    held = range(len(played.exchange.parts) + 2)
    assert [played.past(index) for index in held] == [False] * len(held)
    assert played.past(len(held)) is further


@pytest.mark.parametrize("serves", [True, False])
def test_in_a_service_what_stands_answers_as_often_as_it_is_asked(serves: bool):
    made = HandMade().start()
    standing = {a.PLAYHEAD_ASK_STANDING: "service"}
    made.exchange(KEY, LOGIN, **standing)
    if serves:
        came = {a.PLAYHEAD_ASK_KEY: "GET /", a.PLAYHEAD_EXCHANGE_DIRECTION: "in"}
        asks = ExchangeId(OTHER, "inbound", 0)
        made.fact(
            e.PLAYHEAD_EXCHANGE_REQUEST, OTHER, exchange=asks, attributes=came, body=Content.of(b"")
        )
    player = Player(made.exit(0).tape())
    assert len(list(player.left())) == (0 if serves else 1)
    ask = Ask("http", KEY, Content.of(LOGIN), details=standing)
    found = [player.decide(ExchangeId(OTHER, "http", number), ask, LOGIN) for number in range(3)]
    assert [type(one) for one in found] == ([Played] * 3 if serves else [Played, Refused, Refused])
    if serves:
        assert all(
            one.fidelity is Fidelity.EXACT and one.made for one in found if isinstance(one, Played)
        )


def test_what_stands_is_answered_in_its_order_in_the_request_that_has_it():
    made = HandMade().start(**{a.PLAYHEAD_RUN_LEVEL: "causal"})
    standing = {a.PLAYHEAD_ASK_STANDING: "program"}
    for said in (b"no such table", b"prepared"):
        made.exchange(KEY, LOGIN, (said,), **standing)
    made.exchange(KEY, LOGIN, (b"made anew",), lane=OTHER, **standing)
    player = Player(made.exit(0).tape())
    ask = Ask("http", KEY, Content.of(LOGIN), details=standing)

    def got(lane: int) -> bytes:
        found = player.decide(ExchangeId(lane, "http", 0), ask, LOGIN)
        assert isinstance(found, Played)
        return found.part(0)

    assert [got(OTHER + 1) for _ in range(2)] == [b"prepared"] * 2
    assert [got(MAIN) for _ in range(3)] == [b"no such table", b"prepared", b"prepared"]
    assert got(OTHER) == b"made anew"


def test_an_opening_that_failed_fails_where_it_did_though_others_succeeded():
    made = HandMade().start(**{a.PLAYHEAD_RUN_LEVEL: "causal"})
    standing = {a.PLAYHEAD_ASK_STANDING: "program"}
    made.exchange(KEY, LOGIN, (b"opened",), lane=OTHER, **standing)
    failed = ErrorRecord("builtins", "TimeoutError", "timed out")
    made.exchange(KEY, LOGIN, (), how="error", error=failed, **standing)
    made.exchange(KEY, LOGIN, (b"at last",), **standing)
    player = Player(made.exit(0).tape())
    ask = Ask("http", KEY, Content.of(LOGIN), details=standing)

    def got(lane: int) -> bytes | None:
        found = player.decide(ExchangeId(lane, "http", 0), ask, LOGIN)
        assert isinstance(found, Played) and found.exchange.end is not None
        return None if found.exchange.end.error else found.part(0)

    assert [got(MAIN) for _ in range(3)] == [None, b"at last", b"at last"]
    assert [got(OTHER) for _ in range(2)] == [b"opened"] * 2
    assert got(OTHER + 1) == b"opened"
    assert not list(player.left())
