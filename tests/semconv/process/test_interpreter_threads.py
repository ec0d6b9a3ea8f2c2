"""Threads and waits of the interpreter's own: what they promise, and beside gevent and eventlet."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from support.tapes.spools import eventually

from playhead_core.process import interpreter_threads as native
from playhead_core.process.interpreter_threads import Bell, Thread, Waiters

PATIENCE_S = 60


def test_a_thread_has_a_name_and_is_none_of_the_programs():
    goes_on, found = Bell(), []
    before = set(threading.enumerate())  # some of them may end meanwhile

    def run() -> None:
        found.append((native.own_thread(), set(threading.enumerate()) - before))
        goes_on.wait(PATIENCE_S)

    thread = Thread("playhead-test", run)
    assert not thread.is_alive()
    assert thread.join(0)
    thread.start()
    eventually(lambda: found == [("playhead-test", set())])
    assert thread.is_alive()
    assert "playhead-test" in native.threads()
    assert not thread.join(0.01)
    goes_on.ring()
    assert thread.join(PATIENCE_S)
    assert "playhead-test" not in native.threads()
    assert native.own_thread() == ""


def test_a_thread_takes_no_signal_that_the_program_holds_back():
    held: list[set[int]] = []
    thread = Thread("playhead-test", lambda: held.append(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    thread.start()
    assert thread.join(PATIENCE_S)
    assert held[0] >= {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1}
    assert not held[0] & {signal.SIGSEGV, signal.SIGBUS}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_rings_that_nobody_heard_are_one():
    bell = Bell()
    assert not bell.wait(0)
    bell.ring()
    bell.ring()
    assert bell.wait()
    assert not bell.wait(0.01)


def test_who_waits_for_a_change_looks_at_each():
    changes, state, found = Waiters(), [], []

    def run() -> None:
        found.append(changes.wait_for(lambda: len(state) == 2, PATIENCE_S))

    waiting = [Thread("playhead-test", run) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for number in range(2):
        state.append(number)
        changes.tell()
    assert all(thread.join(PATIENCE_S) for thread in waiting)
    assert found == [True] * 3
    assert not changes.wait_for(lambda: False, 0.01)
    assert changes.wait_for(lambda: True, 0)


def test_in_a_forked_child_no_thread_is_there():
    goes_on = Bell()
    thread = Thread("playhead-test", lambda: goes_on.wait(PATIENCE_S))
    thread.start()
    eventually(lambda: "playhead-test" in native.threads())
    pid = os.fork()
    if pid == 0:
        os._exit(len(native.threads()))
    assert os.waitpid(pid, 0)[1] == 0
    goes_on.ring()
    assert thread.join(PATIENCE_S)


PATCHED = {
    "gevent": "from gevent import monkey; monkey.patch_all(); from gevent import sleep",
    "eventlet": "import eventlet; eventlet.monkey_patch(); from eventlet import sleep",
}
PROGRAM = """
{first}
{second}
import os, threading
said = []
bell, heard = native.Bell(), native.Bell()
def run():
    bell.wait()
    said.append(native.get_ident())
    heard.ring()
thread = native.Thread("playhead-test", run)
thread.start()
sleep(0)
bell.ring()
assert heard.wait(60) and thread.join(60)
assert said != [native.get_ident()]
print("ended")
"""


@pytest.mark.parametrize("patched", PATCHED)
@pytest.mark.parametrize("when", ["before", "after"])
def test_they_are_threads_of_the_system_whoever_patches(patched, when):
    lines = [PATCHED[patched], "from playhead_core.process import interpreter_threads as native"]
    first, second = lines if when == "before" else reversed(lines)
    program = PROGRAM.format(first=first, second=second)
    command = [sys.executable, "-W", "ignore", "-c", program]
    environment = {**os.environ, "EVENTLET_NO_GREENDNS": "yes"}  # its patches stumble over dnspython
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("ended\n", "")
