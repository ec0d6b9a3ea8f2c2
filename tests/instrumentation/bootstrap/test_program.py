"""``python -m playhead_instrumentation``: programs run as the interpreter runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import record

from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_replay.report.compare import compare
from playhead_replay.tape_files.tape_file import read_tape_file, write_tape_file
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LOOKING = """
import json, sys, __main__
print(json.dumps({
    "name": __name__, "file": __file__, "argv": sys.argv, "path": sys.path[0],
    "main": __main__.__dict__ is globals(), "package": globals().get("__package__"),
}))
"""


def run(*words, cwd, **variables):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    environ.update(variables, PYTHONPATH="")
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=environ, capture_output=True, text=True
    )


def replayed(tape, *words, cwd, now="now.tape"):
    """Run a program with nothing but a tape to answer; the result and the tape of the replay."""
    write_tape_file(Path(cwd, "recorded.tape"), tape)
    done = run(*REPLAY, now, "--", *words, cwd=cwd)
    return done, read_tape_file(Path(cwd, now)).tape


REPLAY = ("-m", "playhead_instrumentation", "replay", "--tape", "recorded.tape", "--now")


def empty_tape():
    return record(lambda: None)[1]


@pytest.mark.parametrize(
    "words", [["look.py", "a", "--b"], ["./sub/look.py"], ["-m", "package.look", "-x"]]
)
def test_a_program_finds_what_it_would_find(words, tmp_path):
    for folder in (tmp_path, tmp_path / "sub", tmp_path / "package"):
        folder.mkdir(exist_ok=True)
        (folder / "look.py").write_text(LOOKING)
    (tmp_path / "package" / "__init__.py").touch()
    alone = run(*words, cwd=tmp_path)
    done, _ = replayed(empty_tape(), *words, cwd=tmp_path)
    assert json.loads(done.stdout) == json.loads(alone.stdout)
    assert json.loads(done.stdout)["main"] is True


CHAINED = """
def f():
    raise ValueError("x")

try:
    f()
except ValueError as e:
    raise KeyError("y") from e
"""


@pytest.mark.parametrize(
    "text, code",
    [
        ("raise SystemExit(7)", 7),
        ("import sys; sys.exit('a message')", 1),
        ("import sys; sys.exit()", 0),
        (
            CHAINED,
            1,
        ),
        ("this is no python", 1),
        ("raise KeyboardInterrupt", -2),
        ("print('ends')", 0),
    ],
)
def test_a_program_ends_as_it_would_end(text, code, tmp_path):
    (tmp_path / "end.py").write_text(text)
    alone = run("end.py", cwd=tmp_path)
    done, now = replayed(empty_tape(), "end.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert done.returncode == code
    last = list(now.facts())[-1]
    assert (last.name, last.attributes[a.PLAYHEAD_PROCESS_EXIT_CODE]) == (
        e.PLAYHEAD_PROCESS_EXIT,
        code if code >= 0 else 128 - code,
    )


def test_a_program_that_is_not_there(tmp_path):
    for words in (("none.py",), ("-m", "none"), ("-m", "email")):
        alone = run(*words, cwd=tmp_path)
        done = run("-m", "playhead_instrumentation", "record", *words, cwd=tmp_path)
        assert (done.returncode, done.stderr.splitlines()[-1:]) == (
            alone.returncode,
            alone.stderr.splitlines(),
        )


AGENT = """
import sys, httpx
for number in range(3):
    answer = httpx.post(sys.argv[1], json={"number": number}).json()
    print("answer", answer["n"])
if "--more" in sys.argv:
    httpx.get(sys.argv[1] + "/more")
if "--socket" in sys.argv:
    import socket
    socket.create_connection(("127.0.0.1", 9))
"""


def recorded_agent(tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)

    def program():
        for number in range(3):
            print("answer", httpx.post(server.url, json={"number": number}).json()["n"])

    with ScriptedServer() as server:
        server.script([json_reply({"n": number}) for number in range(3)])
        return record(program)[1], server.url


def test_a_replay_needs_no_server(tmp_path):
    tape, url = recorded_agent(tmp_path)
    done, now = replayed(tape, "agent.py", url, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "answer 0\nanswer 1\nanswer 2\n", "")
    report = compare(tape, now)
    assert not report.divergences
    assert [check.same for check in report.outputs] == [True] * len(report.outputs)
    [start] = [fact for fact in now.facts() if fact.name == e.PLAYHEAD_PROCESS_START]
    assert start.attributes[a.PLAYHEAD_RUN_MODE] == "replay"
    assert start.attributes[a.PLAYHEAD_RUN_SCRIPT] == "agent.py"
    assert start.attributes[a.PLAYHEAD_RUN_ARGV] == ["agent.py", url]


def test_what_the_tape_does_not_answer_is_blocked(tmp_path):
    tape, url = recorded_agent(tmp_path)
    done, now = replayed(tape, "agent.py", url, "--more", cwd=tmp_path)
    assert done.returncode == 1
    assert f"error[exchange-unmatched]: the tape has no answer to GET {url}/more" in done.stderr
    assert [one.what for one in compare(tape, now).divergences if one.kind == "blocked"] != []


def test_a_socket_that_no_boundary_answers_is_blocked(tmp_path):
    tape, url = recorded_agent(tmp_path)
    done, now = replayed(tape, "agent.py", url, "--socket", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        "NetworkBlocked: error[world-blocked]: the replay does not let the program reach" in done.stderr
    )
    [blocked] = [fact for fact in now.facts() if fact.attributes.get(a.PLAYHEAD_EFFECT_KIND) == "socket"]
    assert blocked.attributes[a.PLAYHEAD_EFFECT_TARGET] == "127.0.0.1:9"
    assert blocked.attributes[a.PLAYHEAD_FIDELITY] == "blocked"


def test_a_tape_with_a_gap_is_not_played(tmp_path):
    tape, url = recorded_agent(tmp_path)
    torn = MemoryTape([fact for fact in tape.facts() if fact.seq != 3], tape.instance)
    write_tape_file(tmp_path / "recorded.tape", torn)
    done = run(*REPLAY, "now.tape", "--", "agent.py", url, cwd=tmp_path)
    assert done.returncode == 1
    assert "error[tape-gap]: facts 3 to 3 are missing from the tape" in done.stderr
    assert done.stdout == ""


def test_two_hundred_requests_replay_fast(tmp_path):
    """A lookup does not grow with the tape."""
    (tmp_path / "agent.py").write_text(
        "import sys, httpx\nwith httpx.Client() as client:\n"
        "    for n in range(200): print(client.post(sys.argv[1], json={'n': n}).json())\n"
    )

    def program():
        with httpx.Client() as client:
            for number in range(200):
                print(client.post(server.url, json={"n": number}).json())

    with ScriptedServer() as server:
        server.on(lambda _: True, lambda request: json_reply({"echo": request.json["n"]}), repeat=True)
        tape = record(program)[1]
    done, now = replayed(tape, "agent.py", server.url, cwd=tmp_path)
    assert done.returncode == 0
    assert not compare(tape, now).divergences


def test_a_tape_without_content_is_not_played(tmp_path):
    (tmp_path / "agent.py").write_text("print('ran')")
    with ScriptedServer() as server:
        server.script([json_reply({})])
        bare = Settings(quiet=True, content="metadata")
        tape = record(lambda: httpx.post(server.url, json={"a": 1}), settings=bare)[1]
    write_tape_file(tmp_path / "recorded.tape", tape)
    done = run(*REPLAY, "now.tape", "--", "agent.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[tape]: the tape holds no content" in done.stderr


def test_what_cannot_start_is_not_run_for_real(tmp_path):
    (tmp_path / "agent.py").write_text("print('ran')")
    write_tape_file(tmp_path / "recorded.tape", empty_tape())
    done = run(*REPLAY, "now.tape", "--", "agent.py", cwd=tmp_path, OTEL_SDK_DISABLED="true")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[replay-failed]: the replay could not start" in done.stderr
