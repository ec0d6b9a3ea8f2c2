"""Which recording answers a request, by what the tape says of it."""

from support.handmade import MAIN, HandMade

from playhead_instrumentation.drivers.player import Player
from playhead_instrumentation.drivers.verdict import Played, Refused, Verdict
from playhead_semconv import attributes as a
from playhead_semconv.facts import Ask, Content, ExchangeId, Fidelity

KEY = "POST http://provider/v1/chat/completions"
LOGIN = b'{"user": "me", "password": "[redacted]"}'


def asked(player: Player, body: bytes, keyed: str, ordinal: int = 0) -> Verdict:
    ask = Ask("http", KEY, Content.of(body), details={a.PLAYHEAD_REDACTED_DIGEST: keyed})
    return player.decide(ExchangeId(MAIN, "http", ordinal), ask, body)


def test_a_request_is_found_by_what_was_redacted_in_it():
    """Where redaction finds more at the replay than it found when recorded, the bodies differ."""
    made = HandMade().start()
    made.exchange(KEY, LOGIN, **{a.PLAYHEAD_REDACTED_DIGEST: "11" * 32})
    found = asked(Player(made.exit(0).tape()), b'{"user": "[redacted]"}', "11" * 32)
    assert isinstance(found, Played) and found.fidelity is Fidelity.EXACT


def test_a_request_with_other_credentials_is_the_same_and_with_both_others_none():
    made = HandMade().start()
    made.exchange(KEY, LOGIN, **{a.PLAYHEAD_REDACTED_DIGEST: "11" * 32})
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
