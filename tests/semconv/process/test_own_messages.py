"""Messages of playhead go to stderr, whatever the program has made of `logging` and its streams."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from playhead_core.process.interpreter_threads import Thread
from playhead_core.process.own_messages import Log

PATIENCE_S = 60
PROGRAM = """
import io, logging, sys
from playhead_core.process.own_messages import Log
logging.basicConfig(level=1, stream=sys.stdout)
logging.disable()
sys.stderr = io.StringIO()
log = Log("playhead.test")
try:
    1 / 0
except ZeroDivisionError as problem:
    log.debug("a %s", "detail", exc_info=problem)
log.warning("playhead: a %s\\nwith %d lines", "message", 2)
print(sys.stderr.getvalue())
"""


@pytest.mark.parametrize(("debug", "first"), [("", []), ("1", ["playhead: playhead.test: a detail"])])
def test_they_do_not_pass_logging(debug: str, first: list[str]):
    environ = {**os.environ, "PLAYHEAD_DEBUG": debug}
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE_S)
    lines = done.stderr.splitlines()
    assert done.stdout == "\n"
    assert lines[: len(first)] == first
    assert ("playhead: ZeroDivisionError: division by zero" in lines) == bool(first)
    assert lines[-2:] == ["playhead: a message", "playhead: with 2 lines"]


def test_a_thread_that_prints_one_is_none_of_the_programs(capfd: pytest.CaptureFixture[str]):
    thread = Thread("playhead-test", lambda: Log("playhead.test").warning("a message"))
    before = set(threading.enumerate())
    logging._acquireLock()  # pyright: ignore
    try:
        thread.start()
        assert thread.join(PATIENCE_S)
    finally:
        logging._releaseLock()  # pyright: ignore
    assert set(threading.enumerate()) <= before
    assert capfd.readouterr().err == "playhead: a message\n"


def test_a_closed_stderr_is_no_error():
    program = "import os; from playhead_core.process.own_messages import write_message as write; "
    words = [sys.executable, "-c", f"{program} os.close(2); write('x')"]
    assert subprocess.run(words, timeout=PATIENCE_S).returncode == 0


def test_what_the_program_opened_in_place_of_stderr_gets_no_message(tmp_path: Path):
    program = (
        "import os, socket; from playhead_core.process.own_messages import write_message as write;"
        "os.close(2); file = open('file', 'wb', 0); assert file.fileno() == 2; write('x');"
        "file.close(); one, other = socket.socketpair(); assert 2 in (one.fileno(), other.fileno());"
        "write('x'); one.setblocking(False); other.setblocking(False);"
        "print(one.recv(1) if other.fileno() == 2 else other.recv(1))"
    )
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, timeout=PATIENCE_S, **streams)
    assert (tmp_path / "file").read_bytes() == done.stdout == b""


def test_a_log_of_the_program_in_place_of_stderr_gets_messages(tmp_path: Path):
    program = (
        "import os; from playhead_core.process.own_messages import write_message as write;"
        "os.dup2(os.open('log', os.O_WRONLY | os.O_CREAT), 2); write('x')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    assert (tmp_path / "log").read_bytes() == b"x"
