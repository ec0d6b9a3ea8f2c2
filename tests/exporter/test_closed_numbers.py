"""A program that closes numbers which it did not open, and uses them again, finds only its own bytes."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from msgspec.structs import replace
from support.servers.endpoints import Reply, http_endpoint
from support.starting.forking import UNWARNED
from support.tapes.spools import files

from playhead_exporter.push import pending, push
from playhead_exporter.spool import SpoolFolders, take_left
from playhead_exporter.spool.folders import OWNER, make_folder
from playhead_exporter.spool.owner import OwnerLock

PROGRAM = """
import json, os, signal, sys, time
from playhead_exporter import open_tape_exporter
from playhead_core.facts import Content, Fact

tape_exporter = open_tape_exporter({"service.name": "closes"})
folder, delivers, ends = sys.argv[1:]

def append(n):
    tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=Content.chunk(b"telemetry" * 5000)))

def wait(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)

def is_copied():
    return all(head.copied == head.written for head in list(tape_exporter.sink.active_segments.values()))

def settled():
    if delivers == "delivers":
        tape_exporter.flush(60)
    wait(is_copied)
    # A thread that still delivers has numbers of its own open: here it has been refused, and pauses.
    wait(lambda: tape_exporter.shipper.is_accepting is (delivers == "delivers"))

def close_and_reuse(round):
    # The range of a classic daemon, then its files at exactly the numbers that were freed.
    numbers = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    os.closerange(3, max(numbers) + 1)
    for number in numbers:
        own = os.open(f"{folder}/{round}-{number}", os.O_RDWR | os.O_CREAT)
        if own != number:
            os.dup2(own, number)
            os.close(own)
        os.write(number, b"OWN")
        files[number] = f"{folder}/{round}-{number}"

files = {}
for n in range(3):
    append(n)
settled()
close_and_reuse(1)
for n in range(3, 40):  # more than one head
    append(n)
settled()
if ends == "exits":
    tape_exporter.close(60)
wrong = {}
for number, path in files.items():
    if not os.path.sameopenfile(number, os.open(path, os.O_RDONLY)):
        wrong[path] = "closed"
    elif open(path, "rb").read() != b"OWN":
        wrong[path] = "written"
print(json.dumps({"files": len(files), "wrong": wrong}), flush=True)
if ends == "waits":
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def started(settings, folder, *words):
    folder.mkdir()
    return subprocess.Popen(
        [sys.executable, *UNWARNED, "-c", PROGRAM, folder, *words],
        env={
            **os.environ,
            "PLAYHEAD_QUIET": "1",
            "PLAYHEAD_SPOOL_DIR": settings.spool_dir,
            "PLAYHEAD_DESTINATION": settings.destination,
            "PLAYHEAD_ENDPOINT": settings.endpoint,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_what_is_recorded_reaches_the_endpoint_and_no_file_of_the_program(settings, endpoint, tmp_path):
    settings = replace(settings, endpoint=endpoint.url)
    program = started(settings, tmp_path / "own", "delivers", "exits")
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err.decode()
    told = json.loads(out)
    assert told["files"] >= 2
    assert told["wrong"] == {}
    assert [fact.seq for fact in endpoint.facts()] == list(range(40))


@pytest.mark.parametrize("ends", ["exits", "waits"])
def test_without_an_endpoint_the_spool_keeps_it_and_its_lock(settings, endpoint, tmp_path, ends):
    later = Reply(503, {"Retry-After": "3600"})
    endpoint.rule = lambda path, body: later
    settings = replace(settings, endpoint=endpoint.url)
    program = started(settings, tmp_path / "own", "keeps", ends)
    assert program.stdout is not None and program.stdin is not None
    told = json.loads(program.stdout.readline())
    assert told["files"] >= 3
    assert told["wrong"] == {}
    if ends == "waits":
        (left,) = pending(settings)
        assert left.alive  # its lock is no number that the program could close
        assert take_left(SpoolFolders.of(settings), left.instance) is None
    program.communicate(timeout=60)
    assert program.returncode == (0 if ends == "exits" else -signal.SIGKILL)
    with http_endpoint() as other:  # the first may still be reading a request of the dead program
        report = push(replace(settings, endpoint=other.url))
        assert (report.tally.facts, report.remaining) == (40, [])
        assert [fact.seq for fact in other.facts()] == list(range(40))
    assert files(tmp_path / "spool") in ([], ["endpoint"])


def test_a_folder_that_is_removed_while_it_is_being_locked_is_not_owned(tmp_path, monkeypatch):
    folder, real = tmp_path / "instance", fcntl.flock
    make_folder(folder)

    def flock(number, operation):
        real(number, operation)
        shutil.rmtree(folder)  # another process has delivered it, and a third one begins in it
        make_folder(folder)
        (folder / OWNER).touch()

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", flock)
        assert OwnerLock.take(folder) is None
    lock = OwnerLock.take(folder)
    assert lock is not None and OwnerLock.take(folder) is None
    lock.release()
