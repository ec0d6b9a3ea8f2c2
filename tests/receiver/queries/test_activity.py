"""Of several things that are pending, the one that tells most is what a run does now."""

from __future__ import annotations

from playhead_receiver.queries.activity import Activity, What, most_telling


def pending(what: What, since_ns: int) -> Activity:
    return Activity(what, "", since_ns, since_ns, f"{what}/{since_ns}")


def test_a_person_is_waited_for_unless_something_else_is_pending():
    person = pending("person", 5)
    assert most_telling([]) is None
    assert most_telling([pending("code", 9), person]) is person
    assert most_telling([pending("tool", 3), person]) is person, "the tool asks"
    for other in (pending("tool", 7), pending("model", 3), pending("stream", 3), pending("request", 3)):
        assert most_telling([person, other, pending("code", 9)]) is other
