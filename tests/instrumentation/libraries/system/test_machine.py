"""Standard input, names and numbers of the machine, times of log records."""

import os
import pty
import subprocess
import sys

import pytest
from support.observed.again import again, recorded, replayed
from support.starting.programs import Program

from playhead_core.facts import Fidelity
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LONG = pytest.mark.acceptance

READING = {
    "input": "while True:\n    try: print(repr(input('> ')))\n    except EOFError: break",
    "read": "import sys; print(repr(sys.stdin.read()))",
    "readline": "import sys; print(repr(sys.stdin.readline()), repr(sys.stdin.readlines()))",
    "iteration": "import sys\nfor line in sys.stdin: print(repr(line))",
    "buffer": "import sys; print(sys.stdin.buffer.read(7), sys.stdin.buffer.readline())",
    "fileinput": "import fileinput\nfor line in fileinput.input('-'): print(repr(line))",
    "file": "import sys; f = sys.stdin; print(type(f), type(f.buffer), f.name, f.mode, f.encoding)\n"
    "print(f.fileno(), f.isatty(), f.buffer.peek(2)[:2], sys.__stdin__ is f, repr(f.read(3)))",
    "thread": "import asyncio\nasync def main():\n"
    "    print(await asyncio.gather(asyncio.to_thread(input), asyncio.sleep(0.01, 'slept')))\n"
    "asyncio.run(main())",
    "after the end": "import sys; print([sys.stdin.read(), sys.stdin.read(), sys.stdin.readline()])",
}


@pytest.mark.parametrize(
    ("way", "level"),
    [
        *((way, "strict") for way in READING),
        ("input", "causal"),
        ("thread", "causal"),
        *(pytest.param(way, "causal", marks=LONG) for way in READING if way not in ("input", "thread")),
    ],
)
def test_what_is_piped_in_comes_from_the_tape(way, level, tmp_path):
    done = again(tmp_path, READING[way], stdin="one\ntwo é\n\nthree", level=level).identical()
    assert done.recorded.returncode == 0, done.recorded.stderr
    assert done.recorded.stdout
    assert set(done.report.boundaries) == {"stdin"}


def test_much_input_is_kept_whole(tmp_path):
    text = "".join(f"line {number}\n" for number in range(100_000))
    source = "import sys, hashlib; print(hashlib.sha256(sys.stdin.read().encode()).hexdigest())"
    again(tmp_path, source, stdin=text).identical()


def test_no_input_is_no_input_again(tmp_path):
    source = "try: input()\nexcept EOFError as e: print(repr(e))"
    done = again(tmp_path, source, stdin="").identical()
    assert "EOFError" in done.recorded.stdout


def test_credentials_that_are_typed_do_not_reach_the_tape(tmp_path):
    program = Program.of(tmp_path, "import sys; print(len(sys.stdin.read()))", MY_TOKEN="sesame-open-81")
    _, tape = recorded(program, stdin="my token is sesame-open-81\n")
    assert not any(b"sesame" in (fact.body.inline or b"") for fact in tape.facts() if fact.body)


TYPING = """
import getpass, os, sys
print(sys.stdin.isatty(), sys.stdout.isatty(), os.isatty(1), os.get_terminal_size().columns > 0)
name = input("Who? ")
word = getpass.getpass("Word? ")
print(name, len(word))
try:
    input("More? ")
except EOFError:
    print("no more")
"""


def test_what_is_typed_at_a_terminal_comes_from_the_tape(tmp_path):
    program = Program.of(
        tmp_path, TYPING, PYTHONHASHSEED="0", PLAYHEAD_QUIET="1", PLAYHEAD_LEVEL="causal"
    )
    parent, child = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "playhead_instrumentation", "record", "agent.py"],
        cwd=tmp_path,
        env=program.environ,
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(child)
    seen = b""
    answers = {b"Who? ": b"Ada\n", b"Word? ": b"sesame-open-81\n", b"More? ": b"\x04"}
    try:
        while True:
            data = os.read(parent, 1024)
            seen += data
            for question in list(answers):
                if seen.rstrip(b"\r\n").endswith(question.rstrip()) or question in seen:
                    os.write(parent, answers.pop(question))
    except OSError:
        pass  # the terminal is gone with the program
    assert running.wait(60) == 0, seen
    assert b"Ada 14" in seen and b"no more" in seen
    facts = program.facts()
    program.close()
    from playhead_core.tape.indexed_tapes import MemoryTape

    tape = MemoryTape(facts, facts[0].instance)
    assert not any(b"sesame" in (fact.body.inline or b"") for fact in tape.facts() if fact.body)
    _, now = replayed(program, tape)
    report = compare(tape, now)
    assert report.verdict == "identical", "\n".join(report.lines())
    assert report.boundaries == {"stdin": {Fidelity.EXACT: 3}}


MACHINE = """
import getpass, logging, logging.handlers, os, platform, shutil, signal, socket, sys, time
print(os.getpid(), os.getppid(), os.cpu_count(), os.uname(), os.uname().nodename)
print(socket.gethostname(), platform.node(), platform.platform(), platform.uname().machine)
print(shutil.get_terminal_size(), sys.stdout.isatty(), os.isatty(0))
print(time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
print(time.process_time(), time.process_time_ns(), time.thread_time())
print(os.getrandom(8))
logging.basicConfig(
    stream=sys.stdout,
    level=logging.INFO,
    format="%(asctime)s %(created)f %(relativeCreated)d %(process)d %(thread)d %(message)s",
)
logging.info("one")
logging.getLogger("some.library").warning("two")
try:
    os.get_terminal_size(0)
except OSError as error:
    print(error)
signal.signal(signal.SIGUSR1, lambda *_: print("signalled"))
os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_the_machine_is_the_recorded_one(tmp_path):
    done = again(tmp_path, MACHINE).identical()
    assert done.recorded.returncode == 0, done.recorded.stderr
    assert done.recorded.stdout.endswith("signalled\n")
    found = {
        str(fact.attributes[a.PLAYHEAD_READ_KIND])
        for fact in done.tape.facts()
        if fact.name == e.PLAYHEAD_READ
    }
    assert {"inputs/os.getpid", "inputs/platform.uname", "clock/logging.record"} <= found


def test_libraries_ask_for_the_process_that_runs(tmp_path):
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "forks.py").write_text(
        "import os, threading\ndef same(): return os.getpid() == threading.get_native_id()\n"
    )
    done = again(tmp_path, "import forks\nprint(forks.same())", PYTHONPATH=str(installed)).identical()
    assert done.recorded.stdout == "True\n"
