"""Which processes are known to have ended: those of this machine, by number and start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from playhead_instrumentation.session.process_facts import own_identity
from playhead_receiver.system.local_processes import lives

TELLS = """
import sys
from playhead_instrumentation.session.process_facts import own_identity
print(own_identity(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that lives, and its identity."""
    words = [sys.executable, "-c", TELLS]
    with subprocess.Popen(words, stdin=-1, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_process_that_lives_has_not_ended(other: tuple[subprocess.Popen[str], str]):
    process, told = other
    assert told.count("/") == 2
    assert lives(process.pid, told)
    assert lives(os.getpid(), own_identity())


def test_a_killed_process_has_ended_before_anybody_waits_for_it(
    other: tuple[subprocess.Popen[str], str],
):
    process, told = other
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert lives(process.pid, told) is False
    process.wait()
    assert lives(process.pid, told) is False


def test_a_number_that_is_used_again_is_another_process(other: tuple[subprocess.Popen[str], str]):
    process, told = other
    assert lives(process.pid, told.rpartition("/")[0] + "/1") is False


def test_nothing_is_known_of_other_machines_and_containers(
    other: tuple[subprocess.Popen[str], str],
):
    process, told = other
    boot, namespace, started = told.split("/")
    process.kill()
    process.wait()
    assert lives(process.pid, f"{'0' * len(boot)}/{namespace}/{started}") is None
    assert lives(process.pid, f"{boot}/1/{started}") is None
    for nonsense in ("", "/", "//", "x/y", "a/b/c/d", told[:-1] + "x" * 9):
        assert lives(0, nonsense) is None
    assert lives(1 << 70, told) is None
    assert lives(-1, told) is None
