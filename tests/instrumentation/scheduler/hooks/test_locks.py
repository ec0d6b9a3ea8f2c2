"""Locks, queues and pools under the permits of a strict recording."""

import copy
import functools
import itertools
import multiprocessing.pool
import os
import pickle
import queue
import random
import threading
import time
import weakref
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor

import httpx
import pytest
from support.observed.again import again
from support.observed.racing import noise
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.settings import Settings
from playhead_instrumentation.scheduler.hooks import locks
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")
COUNT = 4


@pytest.fixture
def server():
    numbers = itertools.count()
    chance = random.Random()

    def answer(request):
        time.sleep(chance.random() * 0.005)
        return json_reply({"answer": next(numbers)})

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        yield running


CLIENT = httpx.Client(verify=False, timeout=60)


def ask(url):
    answer = CLIENT.post(url, json={"the": "same"}).json()["answer"]
    noise()
    return answer


def all_run(function, count=COUNT):
    threads = [threading.Thread(target=function, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def one_lock(url):
    """Asked for while it is held over a request, by those who were just answered."""
    lock, seen = threading.Lock(), []

    def one(number):
        for permit in range(3):
            ask(url)
            with lock:
                seen.append((number, permit, ask(url)))

    all_run(one)
    return seen


def one_rlock(url):
    lock, seen = threading.RLock(), []

    def one(number):
        ask(url)
        with lock:
            seen.append((number, ask(url)))
            with lock:
                seen.append((number, ask(url)))

    all_run(one)
    return seen


def with_a_condition(url):
    """Who notifies goes on holding the lock, over a request."""
    condition, ready, seen = threading.Condition(), [], []

    def one(number):
        with condition:
            while not ready:
                condition.wait()
            seen.append((number, ready.pop(0), ask(url)))

    def notify(_):
        for permit in range(COUNT):
            ask(url)
            with condition:
                ready.append(permit)
                condition.notify()
                seen.append(("notified", ask(url)))

    all_run(lambda number: notify(number) if number == COUNT else one(number), COUNT + 1)
    return seen


def with_semaphore_and_barrier(url):
    few, together, seen = threading.Semaphore(2), threading.Barrier(COUNT), []

    def one(number):
        with few:
            seen.append((number, ask(url)))
        together.wait()
        seen.append((number, "after"))

    all_run(one)
    return seen


def with_simple_queues(url):
    given, seen = queue.SimpleQueue(), []

    def one(number):
        if number % 2:
            for _ in range(3):
                given.put((number, ask(url)))
        else:
            for _ in range(3):
                seen.append((number, given.get()))
                ask(url)

    all_run(one, 6)
    return seen


def with_a_pool(url):
    with multiprocessing.pool.ThreadPool(3) as pool:
        return list(pool.imap_unordered(lambda number: (number, ask(url)), range(8)))


def executors_at_once(url):
    """Threads that submit to executors of their own, whose workers begin meanwhile."""
    seen = []

    def one(number):
        with ThreadPoolExecutor(3) as pool:
            for answer in pool.map(lambda _: ask(url), range(3)):
                seen.append((number, answer))

    all_run(one)
    return seen


@pytest.mark.parametrize(
    "program",
    [
        one_lock,
        one_rlock,
        with_a_condition,
        with_semaphore_and_barrier,
        with_simple_queues,
        with_a_pool,
        executors_at_once,
    ],
    ids=lambda one: one.__name__,
)
def test_who_gets_it_is_as_recorded(program, server):
    recorded, tape = record(lambda: program(server.url), settings=STRICT)
    server.close()
    for _ in range(4):
        assert replay(lambda: program(server.url), tape)[0] == recorded


def test_who_waits_for_a_lock_is_not_waited_for(server):
    """Each would be found stuck, after 50 ms."""

    def program():
        lock = threading.Lock()

        def one(_):
            with lock:
                CLIENT.get(server.url)

        all_run(one, 60)

    _, tape = record(program, settings=STRICT)
    assert list(tape.named(e.PLAYHEAD_TURN_LOST)) == []


@pytest.fixture(params=["Lock", "RLock"])
def make(request):
    """Makes locks while a strict recording goes on."""
    with recording(settings=STRICT):
        yield getattr(threading, request.param)


def test_a_lock_is_as_the_real_one(make):
    lock = make()
    assert lock.acquire() is True
    assert beside(lambda: (lock.acquire(False), lock.acquire(timeout=0.01))) == (False, False)
    lock.release()
    assert beside(lambda: lock.acquire(timeout=5) and (lock.release() or True)) is True
    with pytest.raises(RuntimeError):
        lock.release()
    with pytest.raises(ValueError, match="non-blocking"):
        lock.acquire(False, 1)
    with pytest.raises(ValueError, match="timeout"):
        lock.acquire(True, -2)
    with pytest.raises(OverflowError):
        lock.acquire(True, 1e20)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle"):
            copied(lock)
    assert weakref.ref(lock)() is lock
    assert "unlocked" in repr(lock)
    with threading.Condition(lock) as held:
        assert held is True
        assert "unlocked" not in repr(lock)


def beside(function):
    """What ``function`` returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_who_gives_up_waiting_leaves_the_line():
    """And who comes next gets what it did not take."""
    with recording(settings=STRICT):
        lock, got = threading.Lock(), []
        lock.acquire()
        impatient = threading.Thread(target=lambda: got.append(lock.acquire(timeout=0.05)))
        patient = threading.Thread(target=lambda: got.append(lock.acquire()))
        impatient.start()
        patient.start()
        impatient.join()
        lock.release()
        patient.join(60)
    assert got == [False, True]


@pytest.mark.parametrize("make", [lambda: threading.Lock(), lambda: threading.RLock()])
def test_threads_get_a_lock_in_the_order_in_which_they_asked(make):
    def program():
        lock, asked, got = make(), [], []

        def one(number):
            asked.append(number)
            with lock:
                got.append(number)

        lock.acquire()
        threads = [threading.Thread(target=one, args=(number,)) for number in range(COUNT)]
        for thread in threads:
            thread.start()
        while len(asked) < COUNT:  # each runs until it waits for the lock
            time.sleep(0.001)
        lock.release()
        with lock:  # it is free, but others wait for it
            got.append("main")
        for thread in threads:
            thread.join()
        return got == [*asked, "main"]

    assert record(program, settings=STRICT)[0]


def test_an_empty_queue_gives_up_in_time():
    with recording(settings=STRICT):
        waiting = queue.SimpleQueue()
        assert isinstance(waiting, queue.SimpleQueue)
        for wrong in (lambda: waiting.get(timeout=0.02), lambda: waiting.get(False), waiting.get_nowait):
            with pytest.raises(queue.Empty):
                wrong()
        with pytest.raises(ValueError, match="timeout"):
            waiting.get(timeout=-1)
        waiting.put_nowait(1)
        assert (waiting.qsize(), waiting.get(timeout=1)) == (1, 1)


def impatient(holds_s):
    """Gives up on locks and queues that come about when it does."""
    lock, again, items, seen = threading.Lock(), threading.RLock(), queue.SimpleQueue(), []

    def hold():
        for number in range(5):
            with lock, again:
                time.sleep((1 + random.random()) / 2 * holds_s)  # longer than anybody waits
            items.put(number)

    def one(who):
        for _ in range(5):
            for kind in (lock, again):
                got = kind.acquire(timeout=0.003)
                seen.append((who, got))
                if got:
                    time.sleep(0.001)
                    kind.release()
            try:
                seen.append((who, items.get(timeout=0.003)))
            except queue.Empty:
                seen.append((who, "empty"))

    holder = threading.Thread(target=hold)
    holder.start()
    all_run(one, 3)
    holder.join()
    return seen


def test_who_gave_up_gives_up_again():
    recorded, tape = record(lambda: impatient(0.02), settings=STRICT)
    assert {False, True, "empty"} <= {found for _, found in recorded}
    for holds_s in (0.02, 0.0):
        replayed, now = replay(functools.partial(impatient, holds_s), tape)
        assert replayed == recorded
        assert [fact for fact in now.facts() if fact.name == e.PLAYHEAD_MOVED] == []


def test_an_executor_that_is_shut_down_waits_for_its_jobs_only():
    """Which jobs it still cancels does not depend on how fast its workers are."""

    def program():
        begin = threading.Event()
        pool = ThreadPoolExecutor(2)
        jobs = [pool.submit(begin.wait) for _ in range(6)]
        pool.shutdown(wait=False, cancel_futures=True)
        begin.set()
        pool.shutdown()
        return [job.cancelled() for job in jobs]

    recorded, tape = record(program, settings=STRICT)
    assert recorded == [False, False, True, True, True, True]
    assert replay(program, tape)[0] == recorded


def test_an_executor_whose_workers_cannot_begin_is_shut_down():
    def program():
        with ThreadPoolExecutor(1, initializer=int, initargs=("no number",)) as pool:
            with pytest.raises(BrokenExecutor):
                pool.submit(int).result()

    record(program, settings=STRICT)


def test_locks_that_are_older_or_younger_than_the_recording_are_real():
    real = type(threading.Lock())
    with recording(settings=STRICT):
        during = threading.Lock()
        assert type(during) is locks.Lock
        assert isinstance(during, threading.Lock)
    assert type(threading.Lock()) is real
    assert isinstance(threading.Lock(), threading.Lock)
    with during:
        assert beside(lambda: during.acquire(timeout=0.01)) is False
    with recording(settings=Settings(quiet=True, level="causal")):
        assert type(threading.Lock()) is real


def test_the_child_of_a_fork_gets_a_lock_that_was_free(make):
    lock = make()
    read, write = os.pipe()
    held = threading.Event()

    def hold():
        with lock:
            held.set()
            os.read(read, 1)

    holder, waiter = threading.Thread(target=hold), threading.Thread(target=lambda: lock.acquire())
    holder.start()
    assert held.wait(60)
    waiter.start()
    child = os.fork()
    if child == 0:
        lock._at_fork_reinit()
        os._exit(0 if lock.acquire(timeout=2) else 1)
    assert os.waitpid(child, 0)[1] == 0
    os.write(write, b"x")
    for thread in (holder, waiter):
        thread.join()
    for end in (read, write):
        os.close(end)


def test_gevent_finds_locks_that_it_knows_at_a_replay(tmp_path):
    patched = "from gevent import monkey\nmonkey.patch_all()\nprint('patched')\n"
    done = again(tmp_path, patched, level="exchanges").identical()
    assert (done.replayed.returncode, done.replayed.stdout) == (0, "patched\n")
