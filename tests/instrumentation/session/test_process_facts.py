"""The facts of a process: first and last on its tape, without credentials; a new start after a fork."""

import os
import sys
import threading
from pathlib import Path

import httpx2
import pytest
from support.servers.scripted import Gate, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import MemorySink, recording

from playhead_core.facts import ErrorRecord, digest_of
from playhead_core.settings import Settings
from playhead_core.tape.frames import scan_whole
from playhead_core.tape.indexed_tapes import gather
from playhead_instrumentation.bootstrap.compose import open_driver
from playhead_instrumentation.libraries.common import installing
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.patching.program import Program
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.tape_writer import TapeWriter
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.session import process_facts, session
from playhead_instrumentation.session.process_facts import Identity, own_identity
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@pytest.fixture
def announced(tmp_path, monkeypatch):
    script = tmp_path / "refund.py"
    script.write_text("print()")
    program = Program(str(script), ("--token", "abcdefgh12345", "--order", "81"))
    monkeypatch.setattr(RUNTIME, "program", program)
    return script


def test_the_start_fact(announced, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    ids = bytes(range(16)), bytes(range(8))
    with recording(identity=Identity(lambda: ids, attributes={a.PLAYHEAD_RUN_ORIGIN: "x"})) as sink:
        pass
    start = sink.facts[0]
    at = start.attributes
    assert (start.name, start.seq) == (e.PLAYHEAD_PROCESS_START, 0)
    assert (start.trace_id, start.span_id) == ids
    assert at[a.PLAYHEAD_RUN_AGENT] == "refund"
    assert at[a.PLAYHEAD_RUN_SCRIPT] == str(announced)
    assert at[a.PLAYHEAD_RUN_ARGV] == [str(announced), "--token", "[redacted]", "--order", "81"]
    assert at[a.PLAYHEAD_RUN_SCRIPT_DIGEST] == digest_of(b"print()").hex()
    assert at[a.PLAYHEAD_RUN_CWD] == os.getcwd()
    assert at[a.PLAYHEAD_RUN_INTERPRETER] == sys.executable
    assert at[a.PLAYHEAD_RUN_PYTHON_VERSION] == ".".join(map(str, sys.version_info[:3]))
    assert at[a.PLAYHEAD_RUN_HASH_SEED] == "7"
    assert at[a.PLAYHEAD_RUN_MODE] == "record"
    assert at[a.PLAYHEAD_RUN_ORIGIN] == "x"
    assert at[a.PLAYHEAD_PROCESS_PID] == os.getpid()
    assert at[a.PLAYHEAD_PROCESS_IDENTITY] == own_identity()
    assert f"httpx2=={httpx2.__version__}" in at[a.PLAYHEAD_RUN_PACKAGES]
    kept = at[a.PLAYHEAD_RUN_ENVIRONMENT]
    assert "OPENAI_API_KEY=" in kept and "OPENAI_BASE_URL=http://127.0.0.1:1/v1" in kept


def test_a_word_that_is_no_utf_8_is_kept_as_its_bytes_and_without_its_credentials(monkeypatch):
    secret = "pass\udcffword1234"
    words = ["x\udcff", "ä", "--token", secret, f"--api-key={secret}", f"\udcfe {secret}"]
    monkeypatch.setattr(RUNTIME, "program", Program("agent.py", tuple(words)))
    with recording() as sink:
        pass
    kept = ["agent.py", b"x\xff", "ä", "--token", "[redacted]", "--api-key=[redacted]"]
    assert sink.facts[0].attributes[a.PLAYHEAD_RUN_ARGV] == [*kept, b"\xfe [redacted]"]


def test_the_exit_fact():
    sink = MemorySink()
    session.start(Settings(quiet=True), sink=sink, open_driver=open_driver)
    session.stop(1, ErrorRecord("builtins", "ValueError", "no"))
    session.stop(0)
    last = sink.facts[-1]
    assert last.name == e.PLAYHEAD_PROCESS_EXIT
    told = dict(last.attributes)
    assert "pytest" in told.pop(a.PLAYHEAD_RUN_IMPORTED)
    digests = dict(one.split("=") for one in told.pop(a.PLAYHEAD_RUN_MODULES))
    assert digests[__file__] == digest_of(Path(__file__).read_bytes()).hex()[:32]
    assert told == {
        a.PLAYHEAD_PROCESS_EXIT_CODE: 1,
        a.PLAYHEAD_ERROR_MODULE: "builtins",
        a.PLAYHEAD_ERROR_QUALNAME: "ValueError",
        a.PLAYHEAD_ERROR_MESSAGE: "no",
    }
    assert [fact.name for fact in sink.facts].count(e.PLAYHEAD_PROCESS_EXIT) == 1


def test_it_says_that_it_lives():
    beats = Beats()
    session.start(Settings(quiet=True, heartbeat_ms=5), sink=beats, open_driver=open_driver)
    try:
        assert beats.enough.wait(60)
    finally:
        session.stop(0)


class Beats(MemorySink):
    def __init__(self):
        super().__init__()
        self.enough = threading.Event()

    def append(self, fact):
        seq = super().append(fact)
        if len(self.named(e.PLAYHEAD_PROCESS_HEARTBEAT)) >= 3:
            self.enough.set()
        return seq


class Lazy:
    """Stands among the modules until somebody uses it."""

    def __getattr__(self, name):
        raise ImportError("it is not installed")


def test_modules_that_cannot_be_loaded_do_not_keep_the_exit_fact_away(monkeypatch):
    monkeypatch.setitem(sys.modules, "lazy_one", Lazy())
    sink = MemorySink()
    session.start(Settings(quiet=True), sink=sink, open_driver=open_driver)
    session.stop(0)
    assert sink.facts[-1].attributes[a.PLAYHEAD_PROCESS_EXIT_CODE] == 0


@pytest.mark.parametrize(
    "words, script, program",
    [
        (["python", "a.py", "-x"], "a.py", ["a.py", "-x"]),
        (["python", "-X", "dev", "-B", "a.py"], "a.py", ["a.py"]),
        (["python", "-m", "agent.main", "1"], "-m agent.main", ["agent.main", "1"]),
        (["python", "-c", "code", "1"], "-c", ["-c", "1"]),
        (["python"], "", []),
    ],
)
def test_the_command_as_the_interpreter_was_told(words, script, program, monkeypatch):
    monkeypatch.setattr(sys, "orig_argv", words)
    found = Program.of_interpreter()
    assert (found.script, found.words()) == (script, program)


def test_a_secret_variable_is_kept_without_its_value():
    kept = process_facts.environment(
        {"OPENAI_API_KEY": "k", "HOME": "/x", "LANG": "C", "HTTPS_PROXY": "http://u:pass1234@p:1"},
        Redactor(),
    )
    assert kept == ["HTTPS_PROXY=http://u:[redacted]@p:1", "LANG=C", "OPENAI_API_KEY="]


def tape_of(path):
    data = path.read_bytes()
    return gather(data, scan_whole(data)).tapes[0]


def test_a_child_of_a_fork_has_a_tape_of_its_own(tmp_path):
    """A stream that is open across the fork stays the parent's."""
    path = tmp_path / "now.tape"
    gate = Gate()
    with ScriptedServer() as server:
        server.script([sse_reply([b"one", gate, b"two"]), json_reply({})])
        installing.watch(
            PATCHES, session.start(Settings(quiet=True), sink=TapeWriter(path), open_driver=open_driver)
        )
        try:
            with httpx2.stream("GET", server.url, timeout=60) as response:
                parts = response.iter_raw()
                next(parts)
                child = os.fork()
                if child == 0:
                    with httpx2.Client(timeout=60) as client:
                        client.get(f"{server.url}/child")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
                gate.open()
                list(parts)
        finally:
            session.stop(0)
    parent = tape_of(path)
    [of_child] = tmp_path.glob("now.*.tape")
    forked = tape_of(of_child)
    assert forked.instance != parent.instance
    start = next(iter(forked.facts()))
    assert (start.name, start.seq) == (e.PLAYHEAD_PROCESS_START, 0)
    assert start.attributes[a.PLAYHEAD_PROCESS_PARENT_INSTANCE] == parent.instance.hex()
    assert start.attributes[a.PLAYHEAD_PROCESS_PID] == child
    [stream, fork] = parent.exchanges().values()
    assert (stream.ask.key, fork.ask.key) == (f"GET {server.url}", "os.fork")
    assert start.attributes[a.PLAYHEAD_PROCESS_PARENT_EXCHANGE] == str(fork.id)
    assert [one.ask.key for one in forked.exchanges().values()] == [f"GET {server.url}/child"]
    assert not parent.gaps() and not forked.gaps()
    names = [fact.name for fact in forked.facts()]
    assert names[1] == e.PLAYHEAD_LANE
