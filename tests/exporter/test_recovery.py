"""Processes that die, fork or leave damage: what they had appended is delivered, once."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from msgspec.structs import replace
from support.servers.endpoints import Reply
from support.starting.forking import UNWARNED
from support.tapes.spools import chunk, eventually, files, read_all, tape_exporter_for

from playhead_core.tape.frames import HEAD, Scan, next_frame
from playhead_exporter.push import pending, push
from playhead_exporter.spool import SpoolFolders, take_left
from playhead_exporter.spool.segments import LeftSegments

HEAD_OF_CHILD = """
import os, signal, sys, threading
from playhead_exporter import open_tape_exporter
from playhead_core.facts import Content, Fact
from playhead_core.tape.frames import SpanRecord
tape_exporter = open_tape_exporter({"service.name": "child"})
def say(n):
    body = Content.chunk(n.to_bytes(4, "big") * 500)
    return tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=body))
"""

COUNT = 6
LARGE = f"""
for n in range(10, 10 + {COUNT}):
    body = Content.chunk(os.urandom(1 << 20))
    assert tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=body)) == n - 10
os._exit(0)
"""
STREAM = (
    HEAD_OF_CHILD
    + """
n = 0
while True:
    seq = say(n)
    n += 1
    os.write(1, b"%d\\n" % seq)
"""
)


def environ(settings, **more):
    """Quiet: what a child says of an endpoint that is not there depends on how long it takes."""
    return {
        **os.environ,
        "PLAYHEAD_QUIET": "1",
        "PLAYHEAD_SPOOL_DIR": settings.spool_dir,
        "PLAYHEAD_DESTINATION": settings.destination,
        "PLAYHEAD_ENDPOINT": settings.endpoint,
        **more,
    }


def child(script, settings, **options):
    return subprocess.Popen(
        [sys.executable, *UNWARNED, "-c", script],
        env=environ(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def finish(script, settings):
    """Run ``script`` as a child; its process, and what it printed as JSON lines."""
    process = child(HEAD_OF_CHILD + script, settings)
    out, err = process.communicate(timeout=60)
    return process, [json.loads(line) for line in out.splitlines()], err.decode()


def body_of(n):
    return n.to_bytes(4, "big") * 500


def kill_once(settings, endpoint, lines):
    """Kill a streaming child after ``lines`` of its output; what it said it had appended is there."""
    process = child(STREAM, settings)
    said = -1
    with process.stdout:
        while said < lines:
            said = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            if line.endswith(b"\n"):
                said = int(line)
    process.stderr.close()
    process.wait()
    endpoint.requests.clear()
    report = push(replace(settings, endpoint=endpoint.url))
    facts = endpoint.facts()
    assert report.problem == ""
    assert [fact.seq for fact in facts] == list(range(len(facts)))
    assert said < len(facts) <= said + 2
    assert all(fact.body.inline == body_of(fact.seq) for fact in facts)
    assert pending(settings) == []
    assert files(SpoolFolders.of(settings).shared) == []


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_a_random_moment(settings, endpoint, seed):
    kill_once(settings, endpoint, random.Random(seed).randrange(3000))


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_killed_at_a_hundred_random_moments(settings, endpoint):
    for seed in range(100):
        kill_once(settings, endpoint, random.Random(f"many {seed}").randrange(4000))


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os._exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM),
        ("os.abort()", -signal.SIGABRT),
    ],
)
def test_a_process_that_ends_without_a_word(settings, endpoint, end, status):
    process, _, _ = finish(
        f"say(0)\ntape_exporter.sink.append_span(SpanRecord(b''))\nsay(1)\n{end}", settings
    )
    assert process.returncode == status
    (left,) = pending(settings)
    assert (left.alive, left.facts, left.spans, left.agent) == (False, 2, 1, "child")
    assert push(replace(settings, endpoint=endpoint.url)).tally.facts == 2
    assert [fact.seq for fact in endpoint.facts()] == [0, 1]
    assert files(SpoolFolders.of(settings).spool) == []


def test_the_next_process_delivers_what_a_dead_one_left(settings, endpoint):
    finish("say(7)\nos._exit(0)", settings)
    with tape_exporter_for(replace(settings, endpoint=endpoint.url)) as tape_exporter:
        tape_exporter.sink.append(chunk())
        endpoint.wait(lambda: len(endpoint.facts()) == 2)
        assert {fact.instance == tape_exporter.sink.instance for fact in endpoint.facts()} == {
            True,
            False,
        }


def test_what_a_process_that_stops_had_not_delivered_of_a_dead_one_stays(settings, endpoint):
    finish(LARGE, settings)
    to = replace(settings, endpoint=endpoint.url)
    with tape_exporter_for(to) as tape_exporter:

        def stop(path, body):
            if endpoint.facts():  # its own; this is the first request of the other
                tape_exporter.shipper.stop(0)

        endpoint.rule = stop
        tape_exporter.sink.append(chunk())
        eventually(lambda: not tape_exporter.shipper.thread.is_alive())
    endpoint.rule = None
    assert 1 < len(endpoint.facts()) < 1 + COUNT
    assert [left for left in push(to, attempts=60).remaining if not left.alive] == []
    assert {fact.time_ns for fact in endpoint.facts()} >= set(range(10, 10 + COUNT))


def test_a_living_process_is_left_alone(settings, endpoint):
    process = child(STREAM, settings)
    process.stdout.readline()
    try:
        report = push(replace(settings, endpoint=endpoint.url))
        assert (report.tally.facts, report.problem) == (0, "")
        (left,) = report.remaining
        assert (left.alive, left.pid) == (True, process.pid)
    finally:
        process.kill()
        process.communicate()


def test_two_who_push_at_once_deliver_everything_once(settings, endpoint):
    for _ in range(4):
        finish("for n in range(50): say(n)\nos._exit(0)", settings)
    to = replace(settings, endpoint=endpoint.url)
    threads = [threading.Thread(target=push, args=(to,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(endpoint.facts()) == 200
    assert len({(fact.instance, fact.seq) for fact in endpoint.facts()}) == 200


def test_a_push_that_was_interrupted_goes_on_where_it_was(settings, endpoint):
    finish("for n in range(3000): say(n)\nos._exit(0)", settings)
    to = replace(settings, endpoint=endpoint.url)
    endpoint.replies.extend([None, None, Reply(401)])
    report = push(to)
    assert "answered 401" in report.problem
    delivered = len(endpoint.facts())
    assert 0 < delivered < 3000
    assert push(to).problem == ""
    assert [fact.seq for fact in endpoint.facts()] == list(range(3000))


FORK = """
import json
first = say(0)
pid = os.fork()
for n in range(1, 40):
    say(n)
told = json.dumps([pid == 0, tape_exporter.sink.instance.hex(), tape_exporter.sink.count])
os.write(1, told.encode() + b"\\n")
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
os._exit(0)
"""


def test_after_fork_each_side_has_a_tape_of_its_own(settings, endpoint):
    _, said, err = finish(FORK, settings)
    assert err == ""
    counts = {bytes.fromhex(instance): (is_child, count) for is_child, instance, count in said}
    assert sorted(counts.values()) == [(False, 40), (True, 39)]
    push(replace(settings, endpoint=endpoint.url))
    for instance, (is_child, count) in counts.items():
        facts = [fact for fact in endpoint.facts() if fact.instance == instance]
        assert [fact.seq for fact in facts] == list(range(count))
        assert [fact.body.inline for fact in facts] == [body_of(n) for n in range(is_child, 40)]


FORK_OUTLIVES = """
for n in range(9): say(n)
if os.fork() == 0:
    for descriptor in range(3): os.close(descriptor)
    os.open(sys.argv[1], os.O_RDONLY)  # until somebody writes
    os._exit(0)
os._exit(0)
"""


def test_what_a_parent_left_is_delivered_while_its_child_lives(settings, endpoint, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    finish(FORK_OUTLIVES.replace("sys.argv[1]", repr(str(gate))), settings)
    try:
        report = push(replace(settings, endpoint=endpoint.url))
    finally:
        os.close(os.open(gate, os.O_WRONLY))
    assert report.problem == ""
    assert [fact.seq for fact in endpoint.facts()] == list(range(9))
    assert pending(settings) == []


FORK_UNDER_LOAD = """
import json
stop = threading.Event()
def work():
    for _ in range(4000):  # memory takes what three say, however long the forks take
        if stop.is_set():
            break
        say(1)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
pids = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        for n in range(5): say(n)
        os._exit(0 if tape_exporter.sink.count == 5 else 1)
    pids.append(pid)
statuses = [os.waitpid(pid, 0)[1] for pid in pids]
stop.set()
for thread in threads: thread.join()
print(json.dumps([statuses, tape_exporter.sink.count]), flush=True)
os._exit(0)
"""


def test_forks_in_the_middle_of_appends_of_other_threads(settings, endpoint):
    _, ((statuses, count),), _ = finish(FORK_UNDER_LOAD, settings)
    assert statuses == [0] * 10
    assert push(replace(settings, endpoint=endpoint.url)).problem == ""
    tapes = {}
    for fact in endpoint.facts():
        tapes.setdefault(fact.instance, []).append(fact.seq)
    assert sorted(map(len, tapes.values())) == [5] * 10 + [count]
    assert all(seqs == list(range(len(seqs))) for seqs in tapes.values())


MULTIPROCESSING = """
import json, multiprocessing
def work(n):
    say(n)
    return tape_exporter.sink.instance.hex()
if __name__ == "__main__":
    say(100)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        instances = set(pool.map(work, range(30)))
    print(json.dumps([len(instances), tape_exporter.sink.instance.hex() in instances]))
"""


def test_workers_of_multiprocessing(settings, endpoint):
    """The pool's workers are killed by SIGTERM; the parent delivers what they left when it ends."""
    to = replace(settings, endpoint=endpoint.url)
    _, ((workers, among),), err = finish(MULTIPROCESSING, to)
    assert (err, among) == ("", False)
    assert 1 <= workers <= 3
    push(to)
    bodies = sorted(int.from_bytes(fact.body.inline[:4]) for fact in endpoint.facts())
    assert sorted(set(bodies)) == [*range(30), 100]
    numbers = {(fact.instance, fact.seq) for fact in endpoint.facts()}
    assert len(numbers) == 31


COPIED = """
assert tape_exporter._copier.flush(60)
os.write(1, b"copied\\n")
"""
"""Says so when the spool is as it stays: with everything in it, and nobody who writes."""


def test_heads_of_a_spool_that_was_deleted_are_not_delivered(settings, endpoint, patient):
    """Nor are those of a process that lives on; what it says later is its own affair."""
    living = child(f"{HEAD_OF_CHILD}\nsay(0)\n{COPIED}\nsignal.pause()", settings)
    places = SpoolFolders.of(settings)
    with living:
        assert living.stdout.readline() == b"copied\n"
        (instance,) = places.instances()
        assert (places.active_home(instance) / "copied").exists()
        shutil.rmtree(places.spool)
        assert [left.alive for left in pending(settings)] == [True]
        living.kill()
    assert pending(settings) == []
    with tape_exporter_for(replace(settings, endpoint=endpoint.url)) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert tape_exporter.close(60)
        assert {fact.instance for fact in endpoint.facts()} == {tape_exporter.sink.instance}
        eventually(lambda: files(places.shared) == [])


def left_by(settings, count=20):
    """The segments of a dead process that appended ``count`` facts; its heads are on disk."""
    finish(f"for n in range({count}): say(n)\nos._exit(0)", settings)
    places = SpoolFolders.of(settings)
    (instance,) = places.instances()
    left = take_left(places, instance)
    left.release()
    return places, instance, places.home(instance) / "00000001.tape"


def test_a_torn_tail_is_tolerated(settings, endpoint):
    _, _, segment = left_by(settings)
    segment.write_bytes(segment.read_bytes()[:-5])
    report = push(replace(settings, endpoint=endpoint.url))
    assert (report.tally.facts, report.tally.damaged) == (19, 1)
    assert [fact.seq for fact in endpoint.facts()] == list(range(19))
    assert pending(settings) == []


DAMAGE = {
    "payload": lambda data, at: data.__setitem__(at + HEAD.size + 50, data[at + HEAD.size + 50] ^ 1),
    "checksum": lambda data, at: data.__setitem__(at + 5, data[at + 5] ^ 0x80),
    "length, less": lambda data, at: data.__setitem__(at + 1, data[at + 1] ^ 4),
    "length, more": lambda data, at: data.__setitem__(at + 3, data[at + 3] ^ 0x40),
    "zeros": lambda data, at: data.__setitem__(slice(at, at + 9000), bytes(9000)),
    "bytes that are gone": lambda data, at: data.__delitem__(slice(at + 3, at + 77)),
}


@pytest.mark.parametrize("where", ["segment", "head"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_behind_damage_is_delivered_too(settings, endpoint, capfd, damage, where):
    places, instance, segment = left_by(settings)
    data = bytearray(segment.read_bytes())
    starts = [at for at, _ in Scan(bytes(data))]
    DAMAGE[damage](data, starts[7])  # the header is the first
    damaged = bytes(data)
    segment.write_bytes(damaged)
    if where == "head":
        places.active_home(instance).mkdir(parents=True, exist_ok=True)
        (places.active_home(instance) / "00000001.head").write_bytes(damaged + bytes(10_000))
        segment.unlink()
    report = push(replace(settings, endpoint=endpoint.url))
    lost = range(6, 11 if damage == "zeros" else 7)
    assert [fact.seq for fact in endpoint.facts()] == [seq for seq in range(20) if seq not in lost]
    assert report.tally.damaged == 1
    assert (
        "delivery continues after it, and the run shows what is missing; it is kept as"
        in capfd.readouterr().err
    )
    (kept,) = places.spool.glob("rejected/*.tape")
    assert kept.read_bytes() == damaged.rstrip(b"\0") and kept.stat().st_mode & 0o777 == 0o600
    assert pending(settings) == []


@pytest.mark.parametrize("at", [0, 20])
def test_a_segment_whose_begin_is_damaged_is_delivered(settings, endpoint, at):
    _, _, segment = left_by(settings)
    data = bytearray(segment.read_bytes())
    data[at] ^= 1  # the magic, or the header
    segment.write_bytes(data)
    push(replace(settings, endpoint=endpoint.url))
    assert [fact.seq for fact in endpoint.facts()] == list(range(20))


def test_damage_at_many_places_loses_what_is_there(settings, endpoint):
    _, _, segment = left_by(settings)
    data = bytearray(segment.read_bytes())
    starts = [at for at, _ in Scan(bytes(data))]
    for number in (1, 5, 6, 20):
        data[starts[number] + HEAD.size + 100] ^= 1
    segment.write_bytes(data)
    report = push(replace(settings, endpoint=endpoint.url))
    assert [fact.seq for fact in endpoint.facts()] == [n for n in range(20) if n not in (0, 4, 5, 19)]
    assert report.tally.damaged == 3


def test_content_made_to_look_like_frames_takes_no_time():
    beginning = HEAD.pack(1 << 20, 7) + b"\x92\x01"
    began = time.process_time()
    assert next_frame(beginning * 400_000, 0) is None
    assert time.process_time() - began < 10


def test_half_a_frame_in_a_head_is_not_a_frame(settings):
    places, instance, _ = left_by(settings)
    active_segments = places.active_home(instance)
    active_segments.mkdir(parents=True, exist_ok=True)
    whole = (places.home(instance) / "00000001.tape").read_bytes()
    payload = b"\x95" + bytes(40)
    head = whole + bytes(HEAD.size) + payload + bytes(8192)
    (active_segments / "00000001.head").write_bytes(head)
    records = read_all(LeftSegments(instance, places))
    assert [record.seq for record in records] == list(range(20))


def test_a_copy_that_was_interrupted_is_completed_from_the_head(settings, endpoint):
    places, instance, segment = left_by(settings)
    active_segments = places.active_home(instance)
    active_segments.mkdir(parents=True, exist_ok=True)
    shutil.copy(segment, active_segments / "00000001.head")
    segment.write_bytes(segment.read_bytes()[:1234])
    push(replace(settings, endpoint=endpoint.url))
    assert [fact.seq for fact in endpoint.facts()] == list(range(20))
    assert files(places.shared) == []


def test_heads_are_delivered_where_the_disk_takes_nothing(settings, endpoint):
    """The spool folder cannot be made (its name is a file): everything stays in shared memory."""
    spool = SpoolFolders.of(settings).spool
    spool.parent.mkdir(exist_ok=True)
    spool.write_text("not a folder")
    finish("for n in range(20): say(n)\nos._exit(0)", settings)
    push(replace(settings, endpoint=endpoint.url))
    assert [fact.seq for fact in endpoint.facts()] == list(range(20))


def test_a_cursor_that_cannot_be_read_only_repeats(settings, endpoint):
    places, instance, _ = left_by(settings)
    (places.home(instance) / "cursor").write_bytes(b"\xff\xff")
    push(replace(settings, endpoint=endpoint.url))
    assert [fact.seq for fact in endpoint.facts()] == list(range(20))


def test_facts_after_the_close_are_kept_for_the_next(settings, endpoint):
    patient = "from playhead_exporter import tape_exporter as module\nmodule.FIRST_MEETING_S = 60.0\n"
    script = f"{patient}say(0)\nassert tape_exporter.close(60)\nsay(1)\nos._exit(0)"
    to = replace(settings, endpoint=endpoint.url)
    finish(script, to)
    assert [fact.seq for fact in endpoint.facts()] == [0]
    push(to)
    assert [fact.seq for fact in endpoint.facts()] == [0, 1]


def test_pending_counts_what_is_behind_the_cursor(settings):
    finish(
        "for n in range(5): say(n)\ntape_exporter.sink.append_span(SpanRecord(b'abc'))\nos._exit(0)",
        settings,
    )
    (left,) = pending(settings)
    assert (left.facts, left.spans, left.alive) == (5, 1, False)
    assert left.bytes > 5 * 2000


def test_the_command_line(settings, endpoint):
    finish("say(0)\nos._exit(0)", settings)

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "playhead_exporter", *arguments, "--spool", settings.spool_dir],
            env=environ(settings),
            capture_output=True,
            text=True,
            timeout=60,
        )

    listed = command("ls")
    assert "child  dead  1 facts  0 spans" in listed.stdout
    failed = command("push", "--endpoint", settings.endpoint)
    assert failed.returncode == 1
    assert "1 facts remain" in failed.stderr
    pushed = command("push", "--endpoint", endpoint.url)
    assert (pushed.returncode, pushed.stdout) == (0, "delivered 1 facts, 0 spans\n")
    assert command("ls").stdout == ""
    assert command("push", "--endpoint", "ftp://x").returncode == 2
