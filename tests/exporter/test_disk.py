"""A disk that stalls, is full, or is over its budget: the agent never waits, and losses are told."""

import errno
import json
import os
import subprocess
import sys
import threading

import pytest
from msgspec.structs import replace
from support.tapes.spools import chunk, eventually, files, state, tape_exporter_for, tape_of

from playhead_core.facts import Fact
from playhead_core.tape.frames import Scan
from playhead_exporter.delivery import DeliveryNotices
from playhead_exporter.push import pending
from playhead_exporter.spool import SpoolFolders
from playhead_exporter.spool.copier import Copier
from playhead_exporter.spool.folders import DiskBudget, segment_name
from playhead_exporter.spool.owner import OwnerLock, owner_alive
from playhead_exporter.spool.spool import Spool
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class StalledDisk:
    """Writes block on a pipe until it is opened: what a frozen disk does to a writer."""

    def __init__(self):
        self._read, self._write = os.pipe()
        self.entered = threading.Event()

    def __call__(self, fd, data, offset):
        self.entered.set()
        os.read(self._read, 1)
        return os.pwrite(fd, data, offset)

    def thaw(self):
        os.write(self._write, b"x" * 4096)


class FullDisk:
    """Refuses as a full disk does, until there is room."""

    def __init__(self, refusal=errno.ENOSPC):
        self.full, self._refusal = True, refusal

    def __call__(self, fd, data, offset):
        if self.full:
            raise OSError(self._refusal, os.strerror(self._refusal))
        return os.pwrite(fd, data, offset)


def gaps(tape):
    return [fact for fact in tape if fact.name == e.PLAYHEAD_GAP]


def fill(tape_exporter, count, size=10_000):
    return [tape_exporter.sink.append(chunk(bytes(size))) for _ in range(count)]


def test_a_stalled_disk_degrades_to_memory_then_to_a_declared_gap(settings, capfd):
    disk = StalledDisk()
    settings = replace(settings, spool_memory_bytes=400_000)
    with tape_exporter_for(settings, write=disk) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert disk.entered.wait(60)
        eventually(lambda: tape_exporter.disk_problem == "the disk stalls")
        assert fill(tape_exporter, 200) == list(range(1, 201))
        assert sum(head.size for head in tape_exporter.sink.active_segments.values()) <= 400_000
        lost = tape_exporter.sink.lost_facts
        assert 150 < lost < 201
        kept = [fact.seq for fact in tape_of(tape_exporter)]
        assert kept == list(range(201 - lost))
        disk.thaw()
        (gap,) = eventually(lambda: gaps(tape_of(tape_exporter)))
        assert gap.attributes == {
            a.PLAYHEAD_GAP_FIRST: 201 - lost,
            a.PLAYHEAD_GAP_LAST: 200,
            a.PLAYHEAD_GAP_REASON: "the disk stalls",
        }
        assert gap.seq == 201
        assert tape_exporter.sink.append(chunk()) == 202
        assert [fact.seq for fact in tape_of(tape_exporter)] == [*range(201 - lost), 201, 202]
        assert tape_exporter.sink.lost_facts == lost
    said = [line for line in capfd.readouterr().err.splitlines() if "being lost" in line]
    assert len(said) == 1
    assert said[0].startswith("playhead: facts are being lost, the tape has a gap: the disk stalls; ")


class RollsMeanwhile:
    """A head that gets its last frame, and is the last one no more, between two looks at it."""

    def __init__(self, head, last):
        self._active, self._last = head, last

    def __getattr__(self, name):
        found = getattr(self._active, name)
        if name in ("rolled", "written") and self._last is not None:
            last, self._last = self._last, None
            last()
        return found

    def __setattr__(self, name, value):
        own = name.startswith("_")
        object.__setattr__(self, name, value) if own else setattr(self._active, name, value)


def test_where_memory_is_used_up_a_disk_that_works_is_waited_for(settings, slow_disk):
    with tape_exporter_for(replace(settings, spool_memory_bytes=200_000)) as tape_exporter:
        assert fill(tape_exporter, 300) == list(range(300))
        assert tape_exporter.sink.lost_facts == 0
        assert sum(head.size for head in tape_exporter.sink.active_segments.values()) <= 200_000
        assert [fact.seq for fact in tape_of(tape_exporter)] == list(range(300))


def test_a_head_that_rolls_while_it_is_copied_is_copied_whole(settings):
    places, notices = SpoolFolders.of(settings), DeliveryNotices()
    spool = Spool(places, {}, memory_bytes=1 << 20)
    copier = Copier(spool, DiskBudget(places.spool, 1 << 20), notices)
    for n in range(3):
        spool.append(chunk(b"%d" % n))
    ((number, head),) = spool.active_segments.items()

    def last():
        spool.append(chunk(b"3"))
        head.rolled = True

    spool.active_segments[number] = RollsMeanwhile(head, last)
    copier.round()
    copier.round()
    assert number not in spool.active_segments
    data = (places.home(spool.instance) / segment_name(number, "tape")).read_bytes()
    facts = [record for _, record in Scan(data) if isinstance(record, Fact)]
    assert [fact.body.inline for fact in facts] == [b"0", b"1", b"2", b"3"]


def test_while_the_disk_stalls_the_endpoint_still_gets_everything(settings, endpoint):
    disk = StalledDisk()
    settings = replace(settings, spool_memory_bytes=400_000, endpoint=endpoint.url)
    with tape_exporter_for(settings, write=disk) as tape_exporter:
        tape_exporter.sink.append(chunk())
        assert disk.entered.wait(60)
        for _ in range(20):
            fill(tape_exporter, 5)
            assert tape_exporter.flush(60)
        assert tape_exporter.sink.lost_facts == 0
        assert [fact.seq for fact in endpoint.facts()] == list(range(101))
        disk.thaw()


def test_a_full_disk_is_said_and_nothing_is_lost_while_memory_lasts(settings, capfd):
    disk = FullDisk()
    with tape_exporter_for(settings, write=disk) as tape_exporter:
        fill(tape_exporter, 300)
        eventually(lambda: "cannot be written: No space left on device" in capfd.readouterr().err)
        disk.full = False
        eventually(lambda: "is written again" in capfd.readouterr().err)
        fill(tape_exporter, 1)
        assert [fact.seq for fact in tape_of(tape_exporter)] == list(range(301))
        assert tape_exporter.sink.lost_facts == 0


def test_the_disk_budget_is_kept_and_its_end_is_said(settings, slow_disk, capfd):
    settings = replace(settings, spool_budget_bytes=300_000, spool_memory_bytes=200_000)
    with tape_exporter_for(settings) as tape_exporter:
        for _ in range(100):
            fill(tape_exporter, 1)
            tape_exporter.sink.append(state())
        eventually(lambda: tape_exporter.sink.lost_facts)
        spool = SpoolFolders.of(settings).spool
        assert sum((spool / name).stat().st_size for name in files(spool)) <= 300_000
    full = [line for line in capfd.readouterr().err.splitlines() if "is full" in line]
    assert len(full) == 1
    assert "300000 bytes wait for delivery" in full[0]


def test_sync_always_waits_until_the_fact_is_on_disk(settings, slow_disk):
    settings = replace(settings, spool_sync="always")
    with tape_exporter_for(settings) as tape_exporter:
        home = SpoolFolders.of(settings).home(tape_exporter.sink.instance)
        for seq in range(20):
            tape_exporter.sink.append(chunk())
            records = [record for _, record in Scan((home / "00000001.tape").read_bytes())]
            assert records[-1].seq == seq


def test_sync_always_does_not_wait_for_a_disk_that_refuses(settings):
    settings = replace(settings, spool_sync="always")
    disk = FullDisk()
    with tape_exporter_for(settings, write=disk) as tape_exporter:
        fill(tape_exporter, 50, 10)
        assert [fact.seq for fact in tape_of(tape_exporter)] == list(range(50))


FILE_LIMIT = """
import json, resource, sys
from playhead_exporter import open_tape_exporter
from playhead_core.facts import Content, Fact
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
tape_exporter = open_tape_exporter({})
for n in range(600):
    tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=Content.chunk(bytes(5000))))
tape_exporter.flush(0.01)
sink = tape_exporter.sink
print(json.dumps([sink.instance.hex(), sink.count, sink.lost_facts]))
"""


def run(script, settings, **environ):
    environ = {
        **os.environ,
        "PLAYHEAD_SPOOL_DIR": settings.spool_dir,
        "PLAYHEAD_DESTINATION": settings.destination,
        "PLAYHEAD_ENDPOINT": settings.endpoint,
        **environ,
    }
    return subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=150
    )


def test_a_spool_that_the_system_refuses_to_grow(settings):
    """RLIMIT_FSIZE under the size of a head: neither a head nor a segment can be made."""
    script = FILE_LIMIT.replace("1 << 20", "1 << 18")
    done = run(script, settings)
    assert done.returncode == 0, done.stderr
    _, count, lost = json.loads(done.stdout)
    assert (count, lost) == (600, 600)
    assert "facts are being lost" in done.stderr


FULL = """
import json, os, resource, sys, time
from playhead_exporter import open_tape_exporter
from playhead_core.facts import Content, Fact
def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
tape_exporter = open_tape_exporter({})
def say(count):
    for n in range(count):
        tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=Content.chunk(bytes(5000))))
say(40)
home = tape_exporter.sink.folders.home(tape_exporter.sink.instance)
segment = home / "00000001.tape"
until(lambda: segment.exists() and segment.stat().st_size > 200_000)
until(lambda: tape_exporter.sink._prepared is not None)  # the next head
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
say(300)
until(lambda: tape_exporter.disk_problem not in ("", "the disk stalls"))
problem, size = tape_exporter.disk_problem, segment.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
until(lambda: not tape_exporter.disk_problem)
print(json.dumps([problem, size, tape_exporter.sink.lost_facts, tape_exporter.sink.count]))
"""


OWNED = """
import json, os, resource, sys
from pathlib import Path
from playhead_exporter.spool.owner import OwnerLock, owner_alive
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
lock = OwnerLock.take(folder, "here")
print(json.dumps([lock is not None, (folder / "owner").stat().st_size, owner_alive(folder)]))
"""


def test_a_folder_is_owned_even_if_the_system_refuses_to_write_who_owns_it(tmp_path):
    command = [sys.executable, "-c", OWNED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    assert json.loads(done.stdout) == [True, 0, True]


@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EDQUOT])
def test_a_folder_is_owned_on_a_full_disk(tmp_path, monkeypatch, refusal):
    monkeypatch.setattr(os, "pwrite", FullDisk(refusal))
    lock = OwnerLock.take(tmp_path, "here")
    monkeypatch.undo()
    assert lock is not None and owner_alive(tmp_path)
    lock.release()


def test_a_folder_is_not_owned_after_another_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwrite", FullDisk(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        OwnerLock.take(tmp_path, "here")
    monkeypatch.undo()
    assert not owner_alive(tmp_path)


def test_a_file_system_that_really_refuses(settings):
    """The heads are there, the segment may not grow: the limit stands in for a full disk."""
    done = run(FULL, settings)
    assert json.loads(done.stdout) == [os.strerror(errno.EFBIG), 300_000, 0, 340]
    assert "cannot be written: File too large" in done.stderr
    assert "is written again" in done.stderr
    (left,) = pending(settings)
    assert left.facts == 340


def test_a_flush_of_what_is_on_the_disk_succeeds_at_once(settings):
    places, notices = SpoolFolders.of(settings), DeliveryNotices()
    spool = Spool(places, {}, memory_bytes=1 << 20)
    copier = Copier(spool, DiskBudget(places.spool, 1 << 20), notices)
    spool.append(chunk())
    assert not copier.flush(0)
    copier.round()
    assert copier.flush(0)
    copier.stop(0)
