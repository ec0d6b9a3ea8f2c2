import json
import threading
from pathlib import Path

import pytest
from support.cli import CommandLine, refund, store_run
from support.handmade import HandMade

from playhead_receiver.cli.following import Following
from playhead_receiver.cli.verbs import tail
from playhead_receiver.store import Batch, open_store
from playhead_semconv import attributes as a


def test_moments_of_a_run_in_order_and_each_once():
    made = HandMade().start()
    made.chat(chunks=(b"1", b"2"))
    made.tool("refund", "{}", error="ValueError: no order")
    following = Following(made.trace_id)
    items = [*made.facts, *made.spans]
    moments = [moment for item in items for moment in following.take(item)]
    assert [(m.number, m.what, m.name, m.said) for m in moments] == [
        (1, "started", "chat gpt-4o", ""),
        (1, "streaming", "chat gpt-4o", ""),
        (2, "started", "execute_tool refund", ""),
        (1, "ended", "chat gpt-4o", "812→64 tok"),
        (2, "failed", "execute_tool refund", "ValueError: no order"),
    ]
    assert [moment for item in items for moment in following.take(item)] == []
    assert list(Following(b"other trace").take(made.facts[0])) == []


def test_tail_of_an_ended_run_shows_its_last_moments(playhead: CommandLine, refund_1: str):
    done = playhead("tail", "-n", "2")
    assert [line.partition(" ")[2] for line in done.lines] == [
        "10 chat gpt-4o  8→2 tok",
        "11 execute_tool refund  ValueError: no order",
    ]
    assert done.err == "playhead: refund-1 failure, 11 steps\n"


def test_tail_as_json_is_one_object_a_line(playhead: CommandLine, refund_1: str):
    found = [json.loads(line) for line in playhead("tail", "--json").lines]
    assert len(found) == 10
    assert found[-1]["event"] == "failed"
    assert set(found[-1]) == {"time_ns", "step", "event", "name", "detail"}


def test_tail_follows_a_run_until_it_ends(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tail, "POLL_S", 0.01)
    made = refund(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    store = open_store(playhead.data_dir)
    half = len(made.facts) // 2
    store.commit(Batch([], made.facts[:half], {}))
    waiting = threading.Event()

    def rest() -> None:
        waiting.wait(10)
        store.commit(Batch(made.spans, made.facts[half:], {}))

    polled = tail.time.sleep

    def sleep(seconds: float) -> None:
        waiting.set()
        polled(seconds)

    monkeypatch.setattr(tail.time, "sleep", sleep)
    writer = threading.Thread(target=rest)
    writer.start()
    done = playhead("tail", "-n", "0")
    writer.join()
    store.close()
    assert done.status == 0
    assert done.lines[-1].endswith("11 execute_tool refund  ValueError: no order")
    assert sum("  streaming" in line for line in done.lines) >= 1


def test_control_c_detaches(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    store_run(playhead.data_dir, _living())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tail.time, "sleep", interrupted)
    done = playhead("tail")
    assert (done.status, done.err) == (0, "playhead: detached; refund-1 continues\n")


def _living() -> HandMade:
    made = refund(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    made.facts.pop()
    return made


def test_a_tape_file_does_not_go_on(playhead: CommandLine, tmp_path: Path):
    done = playhead("tail", "x.tape")
    assert (done.status, done.err.splitlines()[0]) == (2, "error[usage]: a tape file does not go on")
