"""Credentials are taken out of every value that a fact can hold."""

from support.tapes.handmade import HandMade

from playhead_receiver.transfer.redacted_runs import Redaction
from playhead_semconv import attributes as a
from playhead_semconv.tape.indexed_tapes import MemoryTape
from playhead_semconv.tape.span_starts import starts_of

SECRET = "correct-horse-battery"


def test_the_starts_that_an_ask_carries_are_redacted():
    made = HandMade().start()
    attempt = made.begin("POST", kind=3, carried=True, url__full=f"http://provider/{SECRET}", n=1)
    made.exchange(span=attempt)
    redaction = Redaction([SECRET])
    facts = redaction.tape(MemoryTape(made.facts), made.facts, "now")
    (ask,) = (fact for fact in facts if fact.exchange is not None and starts_of(fact))
    (start,) = starts_of(ask)
    assert start.attributes["url.full"] == "http://provider/[redacted]"
    assert (start.attributes["n"], redaction.places) == (1, 1)
    assert ask.attributes[a.PLAYHEAD_REDACTED_COUNT] == 1
