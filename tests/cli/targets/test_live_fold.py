import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.outside.terminal import screen, terminal
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import HandMade

from playhead_cli.app import run
from playhead_cli.commands.inspect import tail
from playhead_cli.targets.live_fold import Following
from playhead_receiver.storage import Batch, open_store
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


def test_moments_of_a_run_whose_asks_carry_the_starts():
    made = HandMade().start()
    call = made.begin("chat gpt-4o", kind=3, carried=True, **{a.GEN_AI_OPERATION_NAME: "chat"})
    attempt = made.begin("POST", parent=call, kind=3, carried=True, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(span=attempt)
    following = Following(made.trace_id)
    moments = [moment for fact in made.facts for moment in following.take(fact)]
    assert [(m.number, m.what, m.name) for m in moments] == [
        (1, "started", "chat gpt-4o"),
        (1, "streaming", "chat gpt-4o"),
    ]


CALL = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
USED = {a.GEN_AI_USAGE_INPUT_TOKENS: 8, a.GEN_AI_USAGE_OUTPUT_TOKENS: 2}


def told(made: HandMade) -> list[tuple[int, str, str, str]]:
    """The moments of a run, its spans as they end."""
    following = Following(made.trace_id)
    moments = [moment for item in [*made.facts, *made.spans] for moment in following.take(item)]
    return [(m.number, m.what, m.name, m.said) for m in moments]


@pytest.mark.parametrize("between", ["", "a span of the framework"])
def test_a_framework_and_the_client_below_it_are_one_step(between: str):
    made = HandMade().start()
    outer = made.begin("ChatOpenAI", **CALL)
    middle = made.begin(between, parent=outer) if between else outer
    call = made.begin("chat gpt-4o", parent=middle, kind=3, carried=True, **CALL)
    attempt = made.begin("POST", parent=call, kind=3, carried=True, **{a.HTTP_REQUEST_METHOD: "POST"})
    made.exchange(span=attempt)
    made.finish(attempt)
    made.finish(call, **USED)
    made.finish(outer, **USED)
    made.tool("refund", "{}")
    assert told(made)[:4] == [
        (1, "started", "ChatOpenAI", ""),
        (1, "streaming", "chat gpt-4o", ""),
        (2, "started", "execute_tool refund", ""),
        (1, "ended", "chat gpt-4o", "8→2 tok"),
    ]
    assert {number for number, *_ in told(made)} == {1, 2}


def test_a_framework_whose_span_is_known_at_its_end_is_no_step_of_its_own():
    made = HandMade().start()
    outer = made.begin("ChatOpenAI", **CALL)
    first = made.begin("chat gpt-4o", parent=outer, kind=3, **CALL)
    made.finish(first, **USED)
    second = made.begin("chat gpt-4o", parent=outer, kind=3, **CALL)
    made.finish(second, **USED)
    made.finish(outer)
    made.facts.clear()
    assert [(number, what) for number, what, *_ in told(made)] == [
        *((1, "started"), (1, "ended"), (2, "started"), (2, "ended"))
    ]


def test_a_span_of_the_sdk_and_the_request_below_it_are_one_step():
    made = HandMade().start()
    outer = made.begin("chat.sample m-1", kind=3, **CALL)
    asked = made.begin("xai", parent=outer, kind=3, carried=True, **{a.RPC_SYSTEM_NAME: "grpc"})
    made.exchange(span=asked, kind="grpc")
    made.finish(asked)
    made.finish(outer, **USED)
    assert [(number, what) for number, what, *_ in told(made)] == [
        *((1, "started"), (1, "streaming"), (1, "ended"))
    ]


def test_tail_of_an_ended_run_shows_its_last_steps(playhead: CommandLine, refund_1: str):
    done = playhead("tail", "-n", "2")
    assert [line.partition(" ")[2] for line in done.lines] == [
        "10 chat gpt-4o  8→2 tok  400ms",
        "11 execute_tool refund  ValueError: no order  200ms",
    ]
    assert done.err == "playhead: refund-1 failure, 11 steps\n"


def test_tail_has_a_line_a_step(playhead: CommandLine, refund_1: str):
    lines = playhead("tail", "-n", "100").lines
    assert [int(line.split()[1]) for line in lines] == list(range(1, 12))
    assert playhead("tail", "-n", "0").lines == []


def test_a_step_that_goes_on_when_the_run_ends_is_told_too(playhead: CommandLine):
    made = HandMade().start()
    made.begin("execute_tool search", **{a.GEN_AI_OPERATION_NAME: "execute_tool"})
    store_run(playhead.data_dir, made.wait(3))
    [line] = playhead("tail").lines
    assert line.partition(" ")[2].startswith("1 execute_tool search  pending ")


def test_on_a_terminal_a_step_is_one_line_that_changes(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    """What goes on stands at the end, and gives way to the final line."""
    made = HandMade().start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    made.at_ns = time.time_ns()
    call = made.begin("execute_tool search", **{a.GEN_AI_OPERATION_NAME: "execute_tool"})
    store_run(playhead.data_dir, made)
    done = iter([lambda: made.finish(call), lambda: made.exit(0)])

    def sleep(_: float) -> None:
        next(done)()
        store_run(playhead.data_dir, made)

    monkeypatch.setattr(tail.time, "sleep", sleep)
    with terminal(monkeypatch, 60, colour=False) as shown:
        run(["tail", "--data-dir", str(playhead.data_dir), "--no-config"])
    assert re.search(r"1 execute_tool search  pending [\d.m]+s", shown.text)
    steps = [line for line in screen(shown.text) if "execute_tool" in line]
    assert len(steps) == 1 and re.search(r"1 execute_tool search  \d+m?s$", steps[0])


def test_tail_as_json_is_one_object_a_line(playhead: CommandLine, refund_1: str):
    found = [json.loads(line) for line in playhead("tail", "--json").lines]
    assert len(found) == 10
    assert found[-1]["event"] == "failed"
    assert set(found[-1]) == {"schema_version", "run", "time_ns", "step", "event", "name", "detail"}
    assert {one["run"] for one in found} == {"refund-1"}


def test_tail_follows_a_run_until_it_ends(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tail, "POLL_S", 0.01)
    made = refund(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000})
    store = open_store(playhead.data_dir)
    half = len(made.facts) // 2
    store.commit(Batch([], made.facts[:half], {}))
    waiting = threading.Event()

    def rest() -> None:
        waiting.wait(60)
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
    assert done.lines[-1].endswith("11 execute_tool refund  ValueError: no order  200ms")
    steps = [line.split()[1] for line in done.lines]
    assert len(steps) == len(set(steps)) >= 5


def test_tail_follows_the_runs_of_a_query(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    """Those that go on, then those that begin and those that become such; and no other."""
    store = open_store(playhead.data_dir)
    for trace, agent in ((b"1" * 16, "refund"), (b"2" * 16, "other")):
        made = _living(trace, trace, **{a.PLAYHEAD_RUN_AGENT: agent})
        store.commit(Batch([], made.facts, {}))
    ended = refund(b"3" * 16, b"3" * 16, **{a.PLAYHEAD_RUN_AGENT: "refund"})
    store.commit(Batch(ended.spans, ended.facts, {}))
    later = iter(
        [
            _living(b"4" * 16, b"4" * 16, **{a.PLAYHEAD_RUN_AGENT: "refund"}),
            _living(b"5" * 16, b"5" * 16, **{a.PLAYHEAD_RUN_AGENT: "other"}),
        ]
    )

    def sleep(_: float) -> None:
        made = next(later, None)
        if made is None:
            raise KeyboardInterrupt
        store.commit(Batch(made.spans[:3], made.facts, {}))

    monkeypatch.setattr(tail.time, "sleep", sleep)
    done = playhead("tail", "agent:refund", "--json", "-n", "3")
    store.close()
    assert done.status == 0
    found = [json.loads(line) for line in done.lines]
    assert [one["run"] for one in found[:3]] == ["refund-1"] * 3
    assert {one["run"] for one in found[3:]} == {"refund-3"}
    assert {one["event"] for one in found[3:]} >= {"started", "streaming", "ended"}


def test_a_query_of_tail(playhead: CommandLine, refund_1: str, monkeypatch: pytest.MonkeyPatch):
    store_run(playhead.data_dir, _living(b"4" * 16, b"4" * 16))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tail.time, "sleep", interrupted)
    running = playhead("tail", "-n", "1", "status:running", "errors:yes")
    assert [line.partition(" ")[2] for line in running.lines] == [
        "refund-2 11 execute_tool refund  ValueError: no order  200ms"
    ]
    assert playhead("tail", "tool:nothing").lines == []
    refused = playhead("tail", "agent:refund", '"order 81"')
    assert (refused.status, refused.out) == (2, "")
    assert "a text search cannot be followed" in refused.err
    assert playhead("tail", "status:nothing").status == 2


def test_control_c_detaches(playhead: CommandLine, monkeypatch: pytest.MonkeyPatch):
    store_run(playhead.data_dir, _living())

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tail.time, "sleep", interrupted)
    done = playhead("tail")
    assert (done.status, done.err) == (0, "playhead: detached; refund-1 continues\n")


def _living(*ids: bytes, **start: Any) -> HandMade:
    made = refund(*ids, **{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 600_000}, **start)
    made.facts.pop()
    return made


def test_a_tape_file_does_not_go_on(playhead: CommandLine, tmp_path: Path):
    done = playhead("tail", "x.tape")
    assert (done.status, done.err.splitlines()[0]) == (2, "error[usage]: a tape file is not a live run")
