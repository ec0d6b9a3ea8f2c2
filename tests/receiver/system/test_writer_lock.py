import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from playhead_core.errors import StoreBusy, StoreUnavailable
from playhead_receiver.system.writer_lock import FILE, PATIENCE_S, Listening, WriterLock, running

HOLD = """
import sys
from playhead_receiver.system.writer_lock import WriterLock
lock = WriterLock.take(sys.argv[1])
lock.announce("http://127.0.0.1:4318", "127.0.0.1:4317")
print("held", flush=True)
sys.stdin.read()
"""


def holding(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_nobody_is_running_where_nothing_is(tmp_path: Path):
    assert running(tmp_path / "never made") is None
    assert not (tmp_path / "never made").exists()
    assert running(tmp_path) is None


def test_who_holds_the_lock_says_where_it_listens(tmp_path: Path):
    lock = WriterLock.take(tmp_path)
    assert running(tmp_path) == Listening(os.getpid())
    lock.announce("http://127.0.0.1:41801", "127.0.0.1:41802")
    assert running(tmp_path) == Listening(os.getpid(), "http://127.0.0.1:41801", "127.0.0.1:41802")
    lock.announce("http://[::1]:1")
    assert running(tmp_path) == Listening(os.getpid(), "http://[::1]:1")
    lock.release()
    lock.release()
    assert running(tmp_path) is None


def test_another_process_is_refused_with_where_to_send(tmp_path: Path):
    with holding(tmp_path) as process:
        assert running(tmp_path) == Listening(process.pid, "http://127.0.0.1:4318", "127.0.0.1:4317")
        with pytest.raises(StoreBusy) as caught:
            WriterLock.take(tmp_path)
        assert caught.value.what == (
            f"process {process.pid} writes to {tmp_path} and listens at http://127.0.0.1:4318"
        )
        assert caught.value.hint == "export PLAYHEAD_ENDPOINT=http://127.0.0.1:4318"
        process.kill()


def test_who_only_tests_the_lock_is_waited_for(tmp_path: Path):
    WriterLock.take(tmp_path).release()
    with open(tmp_path / FILE, "rb") as tested:
        fcntl.flock(tested, fcntl.LOCK_SH)
        done = threading.Timer(2 * PATIENCE_S, fcntl.flock, (tested, fcntl.LOCK_UN))
        done.start()
        WriterLock.take(tmp_path).release()
        done.join()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path):
    with holding(tmp_path) as process:
        process.kill()
        process.wait()
        assert running(tmp_path) is None
        WriterLock.take(tmp_path).release()


def test_the_lock_is_free_also_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    lock = WriterLock.take(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", refuse)
        lock.release()
    assert running(tmp_path) is None


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        WriterLock.take(tmp_path / "file" / "data")
