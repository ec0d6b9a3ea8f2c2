"""What answers once: of the asking lane first, then of any, each in order."""

from __future__ import annotations

from playhead_instrumentation.recorder.unused import UnusedResponses


def test_the_own_lane_comes_first_and_everything_once():
    shelf: UnusedResponses[str] = UnusedResponses()
    for number, lane in enumerate((1, 2, 1, 2, 3)):
        shelf.put(number, "same", lane)
    shelf.put(9, "other", 1)
    taken = [shelf.take("same", lane) for lane in (2, 1, 2, 2, 2, 2)]
    assert taken == [(1, True), (0, True), (3, True), (2, False), (4, False), None]
    assert shelf.take("other", 5) == (9, False)
    assert shelf.take("other", 1) is None
    assert shelf.take("never", 1) is None


def test_what_answers_two_questions_answers_one():
    shelf: UnusedResponses[str] = UnusedResponses()
    shelf.put(0, "whole", 1)
    shelf.put(0, "keyed", 1)
    assert shelf.take("keyed", 1) == (0, True)
    assert shelf.take("whole", 1) is None
    assert shelf.used(0)
    assert not shelf.use(0)
