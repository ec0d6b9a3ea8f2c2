"""Files that are too large to be read while the program waits: read behind its back, or not at all."""

import fcntl
import gc
import json
import os

import pytest
from support.long import long
from support.observed.files import Ran
from support.starting.programs import Program

from playhead_instrumentation.libraries.files import contents
from playhead_instrumentation.libraries.files.contents import DIGEST, Contents, again
from playhead_semconv import attributes as a
from playhead_semconv import events as e

READING = """
import hashlib, json, os
from playhead_instrumentation.libraries.files.contents import Contents
Contents.settle.__defaults__ = None, 60.0  # a busy machine reads it later
Contents.close.__defaults__ = (60.0,)
from pathlib import Path

def digest(data):
    return hashlib.sha256(data).hexdigest()

print(digest(Path("ws/large.bin").read_bytes()), digest(Path("ws/large.bin").read_bytes()))
state = json.loads(Path("ws/state.json").read_text())
state["turn"] += 1
Path("ws/state.json").write_text(json.dumps(state))
print(len(json.loads(Path("ws/state.json").read_text())["history"]))
with open("ws/state.json", "r+") as file:
    text = file.read()
    file.seek(0)
    file.write(text.replace("one", "two"))
print(Path("ws/state.json").read_text()[:60])
with open("ws/log.txt", "a") as log:
    for number in range(3):
        log.write("x" * 100_000)
        log.flush()
        print(digest(Path("ws/log.txt").read_bytes()))
os.rename("ws/large.bin", "ws/moved.bin")
print(digest(Path("ws/moved.bin").read_bytes()))
Path("ws/moved.bin").unlink()
"""

ONCE = """
from playhead_instrumentation.libraries.files.contents import Contents
Contents.close.__defaults__ = (60.0,)  # a busy machine reads it later
print(len(open("ws/large.bin", "rb").read()))
"""


def told(tape):
    """What the tape says of large files: attributes and size of the body of each telling."""
    return [
        (dict(fact.attributes), None if fact.body is None else fact.body.size)
        for fact in tape.named(e.PLAYHEAD_READ)
        if str(fact.attributes[a.PLAYHEAD_READ_KIND]).startswith("file/content ")
    ]


def opened(tape, name):
    """Attributes and body of each opening of a file."""
    kind = f"file/open ./ws/{name}"
    found = [fact for fact in tape.named(e.PLAYHEAD_READ)]
    return [one for one in found if one.attributes[a.PLAYHEAD_READ_KIND] == kind]


def with_large(tmp_path, size, source, **environ):
    ran = Ran(tmp_path)
    (ran.ws / "large.bin").write_bytes(os.urandom(size))
    os.utime(ran.ws / "large.bin", (1, 1))
    ran.record(source, **environ)
    return ran


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_what_large_files_held_is_replayed(level, tmp_path):
    ran = Ran(tmp_path)
    (ran.ws / "large.bin").write_bytes(os.urandom(3 << 20))
    os.utime(ran.ws / "large.bin", (1, 1))
    state = json.dumps({"turn": 1, "history": ["one"] * 40_000})
    (ran.ws / "state.json").write_text(state)
    ran.record(READING, PLAYHEAD_LEVEL=level)
    (ran.ws / "state.json").write_text("{}")
    done, report = ran.again()
    assert (done.stdout, done.stderr) == (ran.done.stdout, "")
    assert report.verdict == "identical", "\n".join(report.lines())
    first, second = opened(ran.tape, "large.bin")
    number = first.attributes[a.PLAYHEAD_FILE_CONTENT]
    assert second.attributes[a.PLAYHEAD_FILE_CONTENT] == number  # read once
    assert (first.body, first.attributes[a.PLAYHEAD_FILE_SIZE]) == (None, 3 << 20)
    (large,) = [one for one in told(ran.tape) if one[0][a.PLAYHEAD_FILE_CONTENT] == number]
    assert large[1] == 3 << 20


def test_a_digest_alone_lets_the_same_file_answer(tmp_path):
    ran = with_large(tmp_path, 200_000, ONCE, PLAYHEAD_FILE_LIMIT_BYTES="100000")
    ((values, body),) = told(ran.tape)
    assert len(values[a.PLAYHEAD_FILE_DIGEST]) == 64 and body is None
    done, report = ran.again()
    assert (done.stdout, report.verdict) == ("200000\n", "identical")
    (ran.ws / "large.bin").write_bytes(bytes(200_000))
    os.utime(ran.ws / "large.bin", (1, 1))
    done, _ = ran.again()
    assert "it was too large to be kept, and is not there as it was" in done.stderr


def test_a_file_of_a_gibibyte_is_not_read_at_all(tmp_path):
    """The tape says so; a replay reads the same file, and refuses one that looks otherwise."""
    ran = Ran(tmp_path)
    with open(ran.ws / "large.bin", "wb") as file:
        file.truncate(1 << 30)
    ran.record("print(len(open('ws/large.bin', 'rb').read(10)))")
    (fact,) = opened(ran.tape, "large.bin")
    assert fact.attributes[a.PLAYHEAD_FILE_UNKEPT] == "budget"
    assert (fact.body, told(ran.tape)) == (None, [])
    os.truncate(ran.ws / "large.bin", 1 << 20)
    now = ran.tapes / "now.tape"
    done, _ = ran.again()
    assert now.exists()
    assert (
        "its content is not on the tape (more was opened than is read behind the program's back), "
        "and the file that is there now has another size or time"
    ) in done.stderr


def test_the_real_file_answers_where_it_looks_the_same(tmp_path, monkeypatch):
    source = "print(len(open('ws/large.bin', 'rb').read(10)))"
    ran = Ran(tmp_path)
    with open(ran.ws / "large.bin", "wb") as file:
        file.truncate((512 << 20) + 1)
    ran.record(source)
    (fact,) = opened(ran.tape, "large.bin")
    assert fact.attributes[a.PLAYHEAD_FILE_UNKEPT] == "budget"
    os.truncate(ran.ws / "large.bin", 0)
    os.truncate(ran.ws / "large.bin", (512 << 20) + 1)
    mtime_ns = fact.attributes[a.PLAYHEAD_FILE_MTIME_NS]
    os.utime(ran.ws / "large.bin", ns=(mtime_ns, mtime_ns))
    monkeypatch.setattr("support.observed.files.digest", lambda folder: "")  # half a gibibyte, twice
    done, _ = ran.again()
    assert (done.stdout, done.stderr) == ("10\n", "")


COSTS = """
import json, time
with open("large.bin", "wb") as file:
    file.truncate(1 << 30)
open("large.bin", "rb").close()
costs = []
for _ in range(20):
    began = time.perf_counter_ns()
    file = open("large.bin", "rb")
    costs.append(time.perf_counter_ns() - began)
    file.close()
print(json.dumps(min(costs)))
"""


@pytest.mark.acceptance
def test_opening_a_gibibyte_costs_less_than_a_millisecond_more(tmp_path):
    def cost_ns(level):
        folder = tmp_path / level
        folder.mkdir()
        spool = str(folder / "spool")
        program = Program.of(folder, COSTS, PLAYHEAD_LEVEL=level, PLAYHEAD_SPOOL_DIR=spool)
        try:
            done = program.instrumented()
        finally:
            program.close()
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert cost_ns("causal") - cost_ns("exchanges") < 1_000_000


class Told(list):
    """What contents tell, by number."""

    def __call__(self, job, what):
        self.append((job.number, what))


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large.bin"
    path.write_bytes(b"a" * 100_000)
    return path


def later(kept, path, number=None):
    with open(path, "rb") as file:
        return kept.later(str(path), 1, os.fstat(file.fileno()), file.fileno())


def test_what_was_changed_meanwhile_is_not_kept(large, monkeypatch):
    told = Told()
    kept = Contents(1 << 20, told)
    monkeypatch.setattr(Contents, "_put", lambda self, job: self._waiting.append(job))
    assert later(kept, large) == 1
    large.write_bytes(b"b" * 100_001)
    assert later(kept, large) == 2
    large.unlink()  # which changes nothing of what it holds
    for job in list(kept._waiting):
        kept._told(job, kept._read(job))
    assert told == [(1, "changed"), (2, b"b" * 100_001)]


def test_what_changes_while_it_is_read_is_not_kept(large, monkeypatch):
    kept = Contents(1 << 20, Told())
    monkeypatch.setattr(Contents, "_put", lambda self, job: self._waiting.append(job))
    later(kept, large)
    real = os.pread

    def pread(fd, size, at):
        piece = real(fd, size, at)
        with open(large, "ab") as file:
            file.write(b"more")
        return piece

    monkeypatch.setattr(os, "pread", pread)
    (job,) = kept._waiting
    assert kept._read(job) == "changed"


def test_locks_of_the_program_stay(large):
    """Closing any descriptor of a file drops the process's POSIX locks on it."""
    told = Told()
    kept = Contents(1 << 20, told)
    with open(large, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert kept.later(str(large), 1, os.fstat(file.fileno()), file.fileno()) == 1
        kept.close(60)
        assert told == [(1, b"a" * 100_000)]
        pid = os.fork()
        if pid == 0:
            try:
                other = os.open(large, os.O_RDWR)
                fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_budget_and_end_are_said(large, monkeypatch):
    told = Told()
    monkeypatch.setattr(contents, "BUDGET_BYTES", 150_000)
    monkeypatch.setattr(contents, "_now_ns", lambda: 0)  # nothing grows back meanwhile
    kept = Contents(10, told)
    assert later(kept, large) == 1
    assert later(kept, large) == "budget"
    kept.close()
    assert [what.startswith(DIGEST) for _, what in told] == [True]
    assert later(kept, large) == "ended"


def test_too_many_at_once_are_not_waited_for(large, monkeypatch):
    monkeypatch.setattr(Contents, "_put", lambda self, job: self._waiting.append(job))
    kept = Contents(1 << 20, Told())
    gc.collect()  # what it would close later
    before = len(os.listdir("/proc/self/fd"))
    numbers = [later(kept, large) for _ in range(contents.MOST_WAITING + 10)]
    assert numbers[contents.MOST_WAITING - 1 :] == [contents.MOST_WAITING] + ["busy"] * 10
    assert len(os.listdir("/proc/self/fd")) == before + contents.MOST_WAITING
    kept.left_behind()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_without_a_name_is_opened_again(large):
    with open(large, "rb") as file:
        large.unlink()
        other = again(file.fileno(), str(large))
    assert os.read(other, 3) == b"aaa"
    os.close(other)
