"""Signals: a replay runs the handlers of a program where they ran when it was recorded."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.observed.again import Again, again
from support.starting.running import until

from playhead_core.boundaries import LEVELS
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ASK = """
import json, os, signal, sys, threading, time, urllib.request

def ask(what, **more):
    body = json.dumps({"what": what, **more}).encode()
    request = urllib.request.Request(os.environ["SERVER"], body, {"x-pid": str(os.getpid())})
    with urllib.request.urlopen(request) as answer:
        return "".join(piece.decode() for piece in iter(lambda: answer.read1(100), b""))
"""


LOOKS = 40
"""Looks at a thread in a row that find it in the same state."""


def main_thread_is(state: str, pid: int, seen: list[tuple[str, int]]) -> bool:
    """Whether the main thread of a process waits, or computes, for some looks already."""
    words = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(words[11]) + int(words[12])
    switches = Path(f"/proc/{pid}/task/{pid}/status").read_text().partition("\nvoluntary")[2].split()[1]
    seen.append((words[0], int(switches) if state == "waiting" else ticks))
    last = seen[-LOOKS:]
    if state == "waiting":
        return len(last) == LOOKS and last[0][0] == "S" and len(set(last)) == 1
    return len(last) == LOOKS and last[-1][1] - last[0][1] > 5


class Outside(BaseHTTPRequestHandler):
    """Answers with what is asked. With ``signal``, sends that to the program before the last piece."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self._piece(b"you said ")
        pid, signals = int(self.headers["x-pid"]), asked.get("signals", ())
        if state := asked.get("in"):
            self._end(asked)
            until(Path(asked["ready"]).exists, "the program never comes to its wait")
        if signals:
            # Between two waits it computes, and the place within a line is not recorded.
            state_then = state or "waiting"
            until(partial(main_thread_is, state_then, pid, []), f"the program is never {state_then}")
        for name in signals:
            os.kill(pid, getattr(signal, name))
        if state:
            return
        if asked.get("hangs"):
            with contextlib.suppress(ConnectionError):
                self.rfile.read(1)  # until the program hangs up
            return
        if handled := asked.get("until"):
            # Or the answer may come before the handler has run.
            until(Path(handled).exists, "no handler ran")
        self._end(asked)

    def _end(self, asked: Any) -> None:
        self._piece(asked["what"].encode())
        self._piece(b"")

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def outside() -> Iterator[str]:
    """The address of a server that sends signals."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Outside)
    threading.Thread(target=server.serve_forever, name="playhead-test-server", daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def ran(folder: Path, source: str, server: str, level: str) -> Again:
    done = again(folder, ASK + source, level=level, SERVER=server).identical()
    assert done.recorded.returncode == done.replayed.returncode == 0, done.recorded.stderr
    return done


def names(tape: Any) -> list[str]:
    return [fact.attributes[a.PLAYHEAD_INTERRUPT_SIGNAL] for fact in tape.named(e.PLAYHEAD_INTERRUPT)]


INTERRUPTED = """
signal.signal(signal.SIGINT, signal.default_int_handler)
for question in ("one", "two", "three"):
    hangs = question == "two"
    try: print(ask(question, hangs=hangs, signals=["SIGINT"] if hangs else []))
    except KeyboardInterrupt: print("interrupted")
"""


@pytest.mark.parametrize("level", LEVELS)
def test_an_interrupted_answer_is_interrupted_again(tmp_path: Path, outside: str, level: str):
    done = ran(tmp_path, INTERRUPTED, outside, level)
    assert done.recorded.stdout == "you said one\ninterrupted\nyou said three\n"
    assert names(done.tape) == names(done.now) == ["SIGINT"]


HANDLERS = """
class Expired(Exception): pass

def mark(name): open(name, "w").close()

def answered(what, *, name):
    # The answer ends when the handler has run: a signal may come a moment after it was sent.
    return ask(what, signals=[name], until=os.path.abspath(name))

def ends(number, frame):
    global stop
    stop = True
    mark("SIGTERM")

def asks(number, frame):
    print("handler:", answered("from the handler", name="SIGUSR2"), "in", frame.f_code.co_name != "")
    mark("SIGUSR1")

def raises(number, frame):
    raise Expired(number)

def nests(number, frame):
    print("nested")
    mark("SIGUSR2")

stop = False
assert signal.signal(signal.SIGTERM, ends) is signal.SIG_DFL
assert signal.signal(signal.SIGTERM, ends) is ends is signal.getsignal(signal.SIGTERM)
signal.signal(signal.SIGUSR1, asks)
signal.signal(signal.SIGUSR2, nests)
signal.signal(signal.SIGALRM, raises)
print(answered("first", name="SIGUSR1"))
try: print(ask("late", signals=["SIGALRM"], hangs=True))
except Expired as problem: print("expired", *problem.args == (signal.SIGALRM,) and "so")
for number in range(9):
    print(answered("1", name="SIGTERM") if number == 1 else ask(str(number)))
    if stop: break
signal.raise_signal(signal.SIGUSR2)
os.kill(os.getpid(), signal.SIGUSR2)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_handlers_set_flags_ask_and_raise(tmp_path: Path, outside: str, level: str):
    source = HANDLERS.replace(
        "*problem.args == (signal.SIGALRM,) and", "problem.args == (signal.SIGALRM,),"
    )
    done = ran(tmp_path, source, outside, level)
    assert done.recorded.stdout.splitlines() == [
        "nested",
        "handler: you said from the handler in True",
        "you said first",
        "expired True so",
        "you said 0",
        "you said 1",
        "nested",
        "nested",
    ]
    assert names(done.tape) == names(done.now) == ["SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM"]


WAITS = """
def asks_for_a_signal(what, state):
    ask(what, signals=["SIGALRM"], ready=os.path.abspath(what), **{"in": state})
    open(what, "w").close()

def deadline(what, wait):
    class Expired(Exception): pass
    def late(number, frame): raise Expired(what)
    before = signal.signal(signal.SIGALRM, late)
    asks_for_a_signal(what, "computing" if wait is computes else "waiting")
    try: wait()
    except Expired as problem: print("expired:", problem)
    finally: signal.signal(signal.SIGALRM, before)

def computes():
    while True: sum(range(1000))

def begins(wait):
    threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
    wait()

deadline("sleep", lambda: time.sleep(600))
deadline("event", threading.Event().wait)
deadline("lock", lambda: (lock := threading.Lock()).acquire() and lock.acquire())
deadline("computing", computes)
came = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: came.set())
begins(came.wait)
print(ask("between"))
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
asks_for_a_signal("pause", "waiting")
signal.pause()
print("paused")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(signal.sigwait([signal.SIGALRM]).name)
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(signal.sigwaitinfo([signal.SIGALRM]).si_signo == signal.SIGALRM)
print(signal.sigtimedwait([signal.SIGALRM], 0))
"""


@pytest.mark.parametrize("level", LEVELS)
def test_waits_that_a_signal_ends(tmp_path: Path, outside: str, level: str):
    done = ran(tmp_path, WAITS, outside, level)
    assert done.recorded.stdout.splitlines() == [
        "expired: sleep",
        "expired: event",
        "expired: lock",
        "expired: computing",
        "you said between",
        "alarm",
        "paused",
        "SIGALRM",
        "True",
        "None",
    ]


WRITES = """
import playhead
from playhead_exporter.spool.spool import Spool
from playhead_instrumentation.patching import unpatched

class Expired(Exception): pass
def late(number, frame): raise Expired

def keeps(spool, record, keep=Spool._keep):
    global armed
    if armed and threading.current_thread() is threading.main_thread():
        armed = False
        unpatched.pthread_kill(threading.get_ident(), signal.SIGALRM)
        # If it comes again, it does so below, where the program computes.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    return keep(spool, record)

armed, Spool._keep = False, keeps
signal.signal(signal.SIGALRM, late)
armed = True
try:
    playhead.state({"computes": True})
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    while True: sum(range(1000))
except Expired: print("expired")
print(ask("after it"))
"""


@pytest.mark.parametrize("level", ["exchanges", "strict"])
def test_a_handler_raises_into_the_program_and_not_into_the_write_of_a_fact(
    tmp_path: Path, outside: str, level: str
):
    """The signal comes while the spool takes a fact, which stays on the tape."""
    done = ran(tmp_path, WRITES, outside, level)
    assert done.recorded.stdout.splitlines() == ["expired", "you said after it"]
    assert names(done.tape) == names(done.now) == ["SIGALRM"]
    assert not list(done.tape.named(e.PLAYHEAD_GAP))


LOOPS = """
import asyncio

def mark(name): open(name, "w").close()

async def main():
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, lambda: (came.set(), mark("one")))
    print(await asyncio.to_thread(ask, "first", signals=["SIGTERM"], until=os.path.abspath("one")))
    await came.wait()
    loop.remove_signal_handler(signal.SIGTERM)
    later = lambda: (came.clear(), mark("two"))
    signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(later))
    second = asyncio.to_thread(ask, "second", signals=["SIGUSR1"], until=os.path.abspath("two"))
    print(await second, came.is_set())
    try:
        await asyncio.to_thread(ask, "third", signals=["SIGINT"])
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("cancelled", await asyncio.to_thread(ask, "last words"))
        raise

signal.signal(signal.SIGINT, signal.default_int_handler)
try: asyncio.run(main())
except KeyboardInterrupt: print("interrupted")
"""


@pytest.mark.parametrize("level", LEVELS)
def test_event_loops_handle_signals(tmp_path: Path, outside: str, level: str):
    done = ran(tmp_path, LOOPS, outside, level)
    assert done.recorded.stdout.splitlines() == [
        "you said first",
        "you said second False",
        "cancelled you said last words",
        "interrupted",
    ]
    assert names(done.now) == ["SIGTERM", "SIGUSR1", "SIGINT"]
