"""Child processes: programs see of them what they see without us, and again at the replay."""

import asyncio
import ctypes
import fcntl
import gc
import multiprocessing
import os
import pty
import subprocess
import sys

import pytest
import uvloop
from support.observed.process_programs import PROGRAMS, read_by_threads
from support.tapes.sessions import record, recording, replay

from playhead_core.errors import WorldBlocked
from playhead_core.facts import Fidelity
from playhead_core.settings import Settings
from playhead_instrumentation.libraries.files import workspace
from playhead_instrumentation.libraries.subprocess import in_full
from playhead_instrumentation.libraries.subprocess.in_full import ProcessBlocked
from playhead_instrumentation.libraries.subprocess_full.live_child import LiveChild
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

USLEEP = ctypes.CDLL(None).usleep
STRICT = Settings(quiet=True, level="strict")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the programs; it is looked at whole, however busy the machine is."""
    monkeypatch.setattr(workspace, "LOOK_S", 60.0)
    monkeypatch.setattr(workspace, "CHANGED_S", 60.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("settings", [None, STRICT], ids=["causal", "strict"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_seen_recorded_and_replayed(program, settings):
    recorded, tape = record(program, settings=settings)
    asked = [one for one in tape.exchanges().values() if one.id.kind == "process"]
    assert asked
    gc.collect()  # what other tests left open is not closed meanwhile
    before = descriptors()
    replayed, now = replay(program, tape)
    assert replayed == recorded
    assert descriptors() == before
    report = compare(tape, now)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.boundaries["process"] == {Fidelity.EXACT: len(asked)}


def test_threads_that_read_one_child_are_recorded_in_their_order(monkeypatch):
    def late(child, stream, data, *more):
        if stream == "stdout" and data:
            USLEEP(100_000)  # the system's: a sleep of Python would be recorded
        learned(child, stream, data, *more)

    learned = LiveChild.learned
    with monkeypatch.context() as patched:
        patched.setattr(LiveChild, "learned", late)
        _, tape = record(read_by_threads)
    _, now = replay(read_by_threads, tape)
    assert compare(tape, now).verdict == "identical"


@pytest.mark.parametrize(
    "program", [one for one in PROGRAMS if one.__name__ in ("run_failing", "spoken_with", "through_os")],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_recording_changes_nothing(program):
    def told(value):
        return repr(value) if program.__name__ != "through_os" else repr(value[:4])

    assert told(record(program)[0]) == told(program())


def test_what_stands_on_the_tape():
    def program():
        environ = {**os.environ, "MODE": "fast", "SERVICE_TOKEN": "s3cr3t-value-of-mine"}
        words = ["sh", "-c", "cat; echo bad >&2; exit 7", "--token", "s3cr3t-value-two"]
        return subprocess.run(words, env=environ, input=b"given", capture_output=True, cwd="/")

    done, tape = record(program)
    [exchange] = tape.exchanges().values()
    assert (exchange.id.kind, exchange.ask.key, exchange.ask.effect) == ("process", "sh", "write")
    assert tape.read(exchange.ask.body) == (
        b'{"call":"subprocess.Popen","command":["sh","-c","cat; echo bad >&2; exit 7","--token",'
        b'"[redacted]"],"cwd":"/","environment":{"MODE":"fast","SERVICE_TOKEN":"[redacted]"},'
        b'"streams":["piped","piped","piped"]}'
    )
    assert exchange.ask.details[a.PROCESS_COMMAND_ARGS][-1] == "[redacted]"
    assert exchange.head[a.PROCESS_PID] > 1
    assert [tape.read(piece.data) for piece in exchange.sent] == [b"given", b""]
    said: dict[str, bytes] = {}
    for part in exchange.parts:
        stream = part.attributes[a.PLAYHEAD_PROCESS_STREAM]
        said[stream] = said.get(stream, b"") + tape.read(part.data)
    assert said == {"stdout": done.stdout, "stderr": b"bad\n"} and done.stdout == b"given"
    assert exchange.end is not None
    assert exchange.end.values[a.PROCESS_EXIT_CODE] == 7


def cat(data):
    return lambda: subprocess.run(["cat"], input=data, capture_output=True).stdout


@pytest.mark.parametrize(
    "now, difference",
    [
        (b"answer 43", "at byte 8: tape '2', now '3'"),
        (b"answer", "at byte 6: tape ' 42', now (end)"),
        (b"answer 42!", "at byte 9: tape (end), now '!'"),
    ],
)
def test_another_stdin_gets_no_answer(now, difference):
    _, tape = record(cat(b"answer 42"))
    with recording(tape) as sink, pytest.raises(ProcessBlocked) as caught:
        cat(now)()
    assert caught.value.cause == f"its stdin differs {difference}"
    assert compare(tape, sink.tape()).verdict == "blocked"


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(["touch", "made"]),
        lambda: subprocess.Popen("touch made", shell=True),
        lambda: os.system("touch made"),
        lambda: os.popen("touch made"),
        lambda: os.spawnlp(os.P_WAIT, "touch", "touch", "made"),
        lambda: os.posix_spawnp("touch", ["touch", "made"], os.environ),
        lambda: os.execvp("touch", ["touch", "made"]),
        lambda: pty.spawn(["touch", "made"]),
        lambda: pty.fork(),
        lambda: __import__("_posixsubprocess").fork_exec(
            [b"touch", b"made"], (b"/usr/bin/touch",), True, (), None, None,
            -1, -1, -1, -1, -1, -1, -1, -1, False, False, -1, None, None, None, -1, None, False),
        lambda: os.fork(),
        lambda: multiprocessing.get_context("fork").Process(target=print).start(),
        lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
        lambda: os.kill(os.getppid(), 0),
        lambda: os.killpg(os.getpgrp(), 0),
    ],
)  # fmt: skip
def test_what_the_tape_does_not_answer_is_blocked(start, folder):
    _, tape = record(cat(b""))
    with recording(tape) as sink, pytest.raises(PermissionError) as caught:
        start()
    assert isinstance(caught.value, ProcessBlocked) and isinstance(caught.value, WorldBlocked)
    assert caught.value.errno == 13
    assert not list(folder.iterdir())
    assert compare(tape, sink.tape()).verdict == "blocked"


def test_where_nothing_answers_from_a_tape_no_process_starts(folder, monkeypatch):
    tape = record(lambda: None)[1]
    with recording(tape):
        monkeypatch.setattr(in_full, "_entered", None)
        for start in (lambda: subprocess.run(["touch", "made"]), lambda: os.system("touch made")):
            with pytest.raises(ProcessBlocked):
                start()
    assert os.listdir(folder) == []


def test_processes_of_uvloop_are_blocked_too(folder):
    async def main():
        child = await asyncio.create_subprocess_exec("touch", "made")
        return await child.wait()

    _, tape = record(cat(b""))
    with recording(tape), pytest.raises(ProcessBlocked):
        uvloop.run(main())
    assert not list(folder.iterdir())


@pytest.mark.parametrize("passed", [False, True])
def test_a_pipe_of_the_programs_own_is_not_answered_wrongly(passed):
    numbers: list[int] = []

    def program():
        reads, low = os.pipe()
        # A number of its own: what else runs in this process opens and closes lower ones.
        writes = fcntl.fcntl(low, fcntl.F_DUPFD, 700)
        os.close(low)
        numbers[:] = reads, writes
        try:
            if passed:
                subprocess.run(["bash", "-c", f"echo x >&{writes}"], pass_fds=(writes,), check=True)
            else:
                subprocess.run(["echo", "x"], stdout=writes)
            return os.read(reads, 10)
        finally:
            os.close(reads)
            os.close(writes)

    recorded, tape = record(program)
    assert recorded == b"x\n"
    with recording(tape), pytest.raises(ProcessBlocked) as caught:
        program()
    stream = f"descriptor {numbers[1]}" if passed else "stdout"
    assert caught.value.cause == f"its {stream} went where no recording sees it"


def test_a_child_that_nobody_waits_for():
    children = []

    def program():
        children.append(subprocess.Popen(["sleep", "60"]))
        return children[-1].pid

    recorded, tape = record(program)
    children[0].kill()
    children[0].wait()
    replayed, now = replay(program, tape)
    assert replayed == recorded
    assert compare(tape, now).verdict == "identical"
    children[1].returncode = 0


def test_signals_are_effects():
    def program():
        child = subprocess.Popen(["sleep", "60"])
        child.terminate()
        return child.wait()

    recorded, tape = record(program)
    assert recorded == -15
    effects = [
        fact.attributes[a.PLAYHEAD_EFFECT_TARGET]
        for fact in tape.facts()
        if fact.name == e.PLAYHEAD_EFFECT
    ]
    assert effects == ["SIGTERM sleep"]
    assert replay(program, tape)[0] == -15


def test_what_it_did_to_the_workspace_is_on_the_tape(folder):
    (folder / "notes").write_text("old\n")

    def program():
        subprocess.run(["sh", "-c", "sed -i s/old/new/ notes; echo x > more; mkdir sub"], check=True)

    _, tape = record(program)
    from playhead_instrumentation.libraries.files.changes import decode_changes

    [exchange] = tape.exchanges().values()
    assert exchange.end is not None and exchange.end.body is not None
    changes = {one.path: (one.what, one.data) for one in decode_changes(tape.read(exchange.end.body))}
    assert changes == {
        "./more": ("written", b"x\n"), "./notes": ("written", b"new\n"), "./sub": ("folder", None),
    }  # fmt: skip
    for name in ("notes", "more"):
        (folder / name).unlink()
    (folder / "sub").rmdir()
    now = replay(program, tape)[1]
    assert compare(tape, now).verdict == "identical"
    assert not list(folder.iterdir()), "without an overlay a replay does nothing to real files"


def test_another_interpreter_and_folder_ask_the_same():
    def program():
        return subprocess.check_output([sys.executable, "-S", "-c", "print(1)"], cwd=os.getcwd())

    _, tape = record(program)
    [exchange] = tape.exchanges().values()
    assert b'"command":["{python}","-S","-c","print(1)"],"cwd":"{cwd}"' in tape.read(exchange.ask.body)
