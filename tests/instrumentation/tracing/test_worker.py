"""The worker: everything is finished once, wherever it was handed over."""

import os
import select
import threading

import pytest
from opentelemetry import trace
from support.tapes.sessions import record
from support.tapes.spools import eventually

from playhead_core.process.interpreter_threads import own_thread
from playhead_instrumentation.tracing.calls import Calls
from playhead_instrumentation.tracing.worker import Worker
from playhead_semconv import events as e


class Note:
    def __init__(self, done: list[object], name: object) -> None:
        self.done, self.name = done, name

    def finish(self) -> None:
        self.done.append((self.name, own_thread() or threading.current_thread().name))


class Told:
    def __init__(self, ended: threading.Event) -> None:
        self.finish = ended.set


class Broken:
    def finish(self) -> None:
        raise ZeroDivisionError


@pytest.fixture
def worker():
    made = Worker()
    made.start()
    return made


def test_ten_thousand_in_order_on_the_workers_thread(worker):
    done: list[object] = []
    for number in range(10_000):
        worker.submit(Note(done, number))
    assert worker.drain(60)
    assert done == [(number, "playhead-spans") for number in range(10_000)]


def test_one_that_fails_does_not_stop_the_next(worker, capfd):
    done: list[object] = []
    worker.submit(Broken())
    worker.submit(Note(done, "after"))
    assert worker.drain(60)
    assert [name for name, _ in done] == ["after"]
    assert "could not finish a span" in capfd.readouterr().err


def test_what_waits_for_it_is_not_the_program(worker):
    class Slow:
        def finish(self) -> None:
            select.select([], [], [], 0.12)

    def program() -> bool:
        worker.submit(Slow())
        return worker.drain(60)

    drained, tape = record(program)
    assert drained
    assert list(tape.named(e.PLAYHEAD_WAKE)) == []


def test_drain_gives_up_at_its_deadline(worker):
    hold, began = threading.Event(), threading.Event()

    class Slow:
        def finish(self) -> None:
            began.set()
            hold.wait(60)

    worker.submit(Slow())
    assert began.wait(60)
    assert not worker.drain(0.01)
    hold.set()
    assert worker.drain(60)


def test_drain_on_the_workers_own_thread_does_not_wait_for_itself(worker):
    done: list[object] = []
    drained: list[bool] = []

    class Flushing:
        def finish(self) -> None:
            worker.submit(Note(done, "inner"))
            drained.append(worker.drain(60))

    worker.submit(Flushing())
    assert worker.drain(60)
    assert drained == [True]
    assert done == [("inner", "playhead-spans")]


def test_inline_without_a_thread_and_at_the_end():
    worker, done = Worker(), []
    worker.submit(Note(done, "no thread yet"))
    assert done == [("no thread yet", "MainThread")]
    worker.finish_inline()
    worker.start()
    worker.submit(Note(done, "late"))
    assert done[-1] == ("late", "MainThread")


def test_after_fork_the_child_finishes_its_own_and_not_the_parents(worker):
    hold, began = threading.Event(), threading.Event()
    done: list[object] = []

    class Slow:
        def finish(self) -> None:
            began.set()
            hold.wait(60)

    worker.submit(Slow())
    assert began.wait(60)
    worker.submit(Note(done, "parent"))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        worker.start()
        worker.submit(Note(done, "child"))
        worker.drain(60)
        os.write(writer, repr([name for name, _ in done]).encode())
        os._exit(0)
    os.close(writer)
    hold.set()
    assert os.read(reader, 1000) == b"['child']"
    os.close(reader)
    assert os.waitpid(child, 0)[1] == 0
    assert worker.drain(60)
    assert [name for name, _ in done] == ["parent"]


def test_the_thread_ends_with_its_worker():
    worker = Worker()
    worker.start()
    thread = worker.thread
    assert thread is not None and thread.is_alive()
    del worker
    assert thread.join(60)


def test_the_thread_ends_with_the_calls_whose_it_is():
    calls = Calls(trace.get_tracer("test"), lambda: lambda call: None)
    calls.worker.start()
    thread = calls.worker.thread
    assert thread is not None and thread.is_alive()
    del calls
    assert thread.join(60)


def test_one_that_sleeps_is_woken_by_the_next_job(worker):
    for _ in range(3):
        eventually(lambda: worker._waking.sleeps)
        ended = threading.Event()
        worker.submit(Told(ended))
        assert ended.wait(60)
