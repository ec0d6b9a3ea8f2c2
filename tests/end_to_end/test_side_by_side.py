"""Recordings side by side: each run is in its own folder, is found, and is not called dead early."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.long import long
from support.servers.endpoints import http_endpoint
from support.servers.postgres import PostgresServer
from support.starting.home import Home
from support.starting.running import receiver, until
from support.tapes.batches import START_NS, span_of

from playhead_cli.running.undelivered import delivered_by_another
from playhead_core.errors import PlayheadError
from playhead_core.settings import Settings
from playhead_exporter.spool.folders import SpoolFolders
from playhead_exporter.spool.recovery import left_facts, take_left
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.storage.values.run_summaries import Query, RunSummary
from playhead_receiver.system.writer_lock import running
from playhead_semconv import attributes as a

AGENT = """
import os, sys
own = sys.argv[1]
with open(own + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(own + ".new", own)
for line in sys.stdin:
    print(line, end="", flush=True)
"""
SPAN = """
from opentelemetry import trace
with trace.get_tracer("agent").start_as_current_span("step"):
    pass
"""
CHECKS = """
import playhead
@playhead.check
def never(span):
    return False
"""
PATIENCE_S = 60


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """One home with the default spool and a folder for data, which each recording names."""
    home = Home(tmp_path, {})
    for name in ("PLAYHEAD_DATA_DIR", "PLAYHEAD_SPOOL_DIR"):
        del home.environ[name], home.bare[name]
    home.environ["XDG_STATE_HOME"] = home.bare["XDG_STATE_HOME"] = str(tmp_path / "state")
    (tmp_path / "agent.py").write_text(AGENT)
    yield home
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


class Recording:
    """A ``playhead record`` of an agent that lives until `end`."""

    def __init__(self, home: Home, name: str, data: Path, *options: str) -> None:
        self.name, self.data = name, data
        self.own = home.folder / f"{name}.pid"
        words = ("--data-dir", data, "record", "--agent", name, "--level", "exchanges", *options)
        self.command = home.start(*words, "agent.py", self.own)

    def started(self) -> bool:
        return self.own.exists() and self.run() is not None

    @property
    def pid(self) -> int:
        return int(self.own.read_text())

    def run(self) -> RunSummary | None:
        return runs_in(self.data).get(f"{self.name}-1")

    def end(self) -> str:
        """End the agent; returns what the command said."""
        _, err = self.command.communicate("", timeout=PATIENCE_S)
        return err


def runs_in(folder: Path | str) -> dict[str, RunSummary]:
    try:
        store = open_store(folder, read_only=True)
    except PlayheadError:
        return {}
    try:
        return {run.name: run for run in store.runs(Query(mode=None, limit=10_000))}
    finally:
        store.close()


def test_a_recording_that_outlives_the_one_with_the_receiver_has_the_next(home: Home):
    data = home.folder / "data"
    first = Recording(home, "first", data)
    until(first.started, "the first records")
    second = Recording(home, "second", data)
    until(second.started, "the second records")
    found = running(data)
    assert found is not None and found.pid == first.command.pid
    assert "first-1 success" in first.end()

    def succeeded() -> bool:
        now = running(data)
        return now is not None and (now.pid, now.http) == (second.command.pid, found.http)

    until(succeeded, "the second takes the place of the first")
    run = second.run()
    assert run is not None and run.status == "running"
    assert "second-1 success" in second.end()
    assert sorted(runs_in(data)) == ["first-1", "second-1"]


def test_recordings_at_once_with_a_folder_each_have_their_runs_there(home: Home):
    recordings = [Recording(home, f"project{n}", home.folder / f"data-{n}") for n in range(3)]
    for one in recordings:
        until(one.started, f"{one.name} records")
    for one in recordings:
        said = one.end()
        assert f"{one.name}-1 success" in said
    assert [list(runs_in(one.data)) for one in recordings] == [[f"{one.name}-1"] for one in recordings]


def test_a_run_is_found_behind_hundreds_of_newer_ones_and_its_failed_check_counts(home: Home):
    data, checks = home.folder / "data", home.folder / "checks.py"
    checks.write_text(CHECKS)
    (home.folder / "agent.py").write_text(AGENT + SPAN)
    with receiver(data) as running_receiver:
        first = Recording(home, "first", data, "--check", str(checks))
        until(first.started, "it records")
        newer = (time.time_ns() + 60 * 10**9 - START_NS) // 1000
        spans = [span_of(os.urandom(16), newer + n) for n in range(150)]
        running_receiver.store.commit(Batch(spans, []))
        said = first.end()
    assert first.command.returncode == 1
    assert "first-1 success" in said
    assert "2 checks failed" in said


def test_a_failed_check_counts_where_the_run_cannot_be_read(home: Home):
    (home.folder / "checks.py").write_text(CHECKS)
    (home.folder / "agent.py").write_text(AGENT + SPAN)
    with http_endpoint() as endpoint:
        home.environ["PLAYHEAD_ENDPOINT"] = endpoint.url
        first = Recording(home, "first", home.folder / "data", "--check", "checks.py")
        said = first.end()
    assert first.command.returncode == 1
    assert f"recorded to {endpoint.url}" in said


def test_beside_a_receiver_the_database_that_is_named_keeps_the_run(
    home: Home, postgres: PostgresServer
):
    url = f"{postgres.url()}&schema=beside"
    with receiver(home.folder / "data"):
        first = Recording(home, "first", home.folder / "data", "--store", url)
        assert "first-1 success" in first.end()
    assert runs_in(home.folder / "data") == {}
    assert list(runs_in(url)) == ["first-1"]


def test_what_another_command_is_delivering_is_waited_for(home: Home):
    data = home.folder / "data"
    with receiver(data):
        first = Recording(home, "first", data)
        until(first.started, "it records")
    # The receiver is gone. The command stands still while its agent ends and another one takes its tape.
    first.command.send_signal(signal.SIGSTOP)
    assert first.command.stdin is not None
    first.command.stdin.close()
    first.command.stdin = None
    until(lambda: not is_alive(first.pid), "the agent ends")
    settings = Settings(spool_dir=str(home.folder / "state" / "playhead" / "spool"))
    spool = msgspec.structs.replace(SpoolFolders.of(settings), everything=True)
    (instance,) = spool.instances()
    start = next(left_facts(spool, instance)).attributes
    word = str(start[a.PLAYHEAD_PROCESS_RECORDED_BY])
    assert not delivered_by_another(settings, word)
    taken = take_left(spool, instance)
    assert taken is not None and delivered_by_another(settings, word)
    first.command.send_signal(signal.SIGCONT)
    until(lambda: running(data) is not None, "the command has embedded a receiver")
    taken.release()
    assert "first-1 success" in first.end()


class Machine:
    """Folders, receivers and recordings of one user."""

    def __init__(self, home: Home, folders: int, receivers: int) -> None:
        self.home = home
        self.folders = [home.folder / f"data-{n}" for n in range(folders)]
        self.receivers: dict[Path, subprocess.Popen[str]] = {}
        self.receiving = self.folders[:receivers]
        self.expected: dict[Path, set[str]] = {folder: set() for folder in self.folders}

    def round(self, number: int, count: int, draw: random.Random) -> None:
        for folder in self.receiving:
            if folder not in self.receivers:
                self.receivers[folder] = self._up(folder)
        recordings = [
            Recording(self.home, f"r{number}k{k}", draw.choice(self.folders)) for k in range(count)
        ]
        for one in recordings:
            until(one.started, f"{one.name} records")
            self.expected[one.data].add(f"{one.name}-1")
        killed = self._kill(recordings, draw)
        living = [one for one in recordings if (one, "agent") not in killed]
        draw.shuffle(living)
        for at, one in enumerate(living):
            for other in living[at:]:
                run = other.run()
                assert run is not None and run.status == "running", (other.name, run and run.status)
            said = one.end()
            if (one, "command") in killed:
                until(lambda pid=one.pid: not is_alive(pid), f"the agent of {one.name} ends")
            else:
                assert f"{one.name}-1 success" in said, (one.name, said)
        for one in recordings:
            if (one, "agent") in killed:
                said = one.end()
                assert (one, "command") in killed or f"{one.name}-1 interrupted" in said, said

    def _up(self, folder: Path) -> subprocess.Popen[str]:
        ports = [word for name in ("http", "grpc", "query") for word in (f"--{name}-port", "0")]
        up = self.home.start("--data-dir", folder, "up", "--json", *ports)
        assert up.stdout is not None and up.stdout.readline()
        return up

    def _kill(self, recordings: list[Recording], draw: random.Random) -> set[tuple[Recording, str]]:
        killed: set[tuple[Recording, str]] = set()
        for one in draw.sample(recordings, max(1, len(recordings) // 4)):
            what = draw.choice(("agent", "command"))
            os.kill(one.pid if what == "agent" else one.command.pid, signal.SIGKILL)
            killed.add((one, what))
        if self.receivers and draw.random() < 0.5:
            up = self.receivers.pop(draw.choice(list(self.receivers)))
            up.kill()
            up.communicate()
        return killed

    def deliver(self) -> None:
        """Deliver what commands that were killed left."""
        for folder in self.folders:
            pushed = self.home.playhead("--data-dir", folder, "spool", "push")
            assert pushed.returncode == 0, pushed.stderr

    def close(self) -> None:
        for up in self.receivers.values():
            up.kill()
            up.communicate()


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("rounds", "recordings", "receivers", "folders"), [(1, 3, 1, 2), long(50, 8, 2, 3)]
)
def test_each_run_is_in_its_folder_and_found_whatever_is_killed(
    home: Home, rounds: int, recordings: int, receivers: int, folders: int
):
    machine = Machine(home, folders, receivers)
    draw = random.Random(35)
    try:
        for number in range(rounds):
            machine.round(number, recordings, draw)
        machine.deliver()
    finally:
        machine.close()
    for folder in machine.folders:
        assert set(runs_in(folder)) == machine.expected[folder]
