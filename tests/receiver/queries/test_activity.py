"""Of several things that are pending, the one that tells most is what a run does now."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from conformance.suite.base import TRACE, batch_of, living, run_of

from playhead_receiver.queries.activity import Activity, What, activity_of, most_telling
from playhead_receiver.storage import open_store
from playhead_semconv import events as e


def pending(what: What, since_ns: int) -> Activity:
    return Activity(what, "", since_ns, since_ns, f"{what}/{since_ns}")


def test_a_person_is_waited_for_unless_something_else_is_pending():
    person = pending("person", 5)
    assert most_telling([]) is None
    assert most_telling([pending("code", 9), person]) is person
    assert most_telling([pending("tool", 3), person]) is person, "the tool asks"
    for other in (pending("tool", 7), pending("model", 3), pending("stream", 3), pending("request", 3)):
        assert most_telling([person, other, pending("code", 9)]) is other


def test_a_tool_that_has_taken_hours_of_heartbeats_is_still_what_a_run_does(tmp_path: Path):
    made = living()
    made.exchange("search_docs", kind="tool", answered=False)
    for number in range(2000):
        made.fact(e.PLAYHEAD_PHASE if number == 1900 else e.PLAYHEAD_PROCESS_HEARTBEAT)
    with closing(open_store(tmp_path)) as store:
        store.commit(batch_of(made))
        now = activity_of(store, run_of(store, TRACE))
    assert now is not None and (now.what, now.name) == ("tool", "search_docs")
