"""`playhead record`, `ls`, `show`, `replay` on real SDKs: the whole way, and back."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.observed.asking import ASKING
from support.starting.home import PATIENCE_S, Home
from support.starting.running import until

from playhead_cli.demo.provider import Provider
from playhead_core.facts import Content
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import running
from playhead_replay import Run, write_tape_file
from playhead_semconv import events as e

SLOW = f"""
import sys
{ASKING}
print(asked("What do I pack?"), flush=True)
sys.stdin.readline()
print(asked("And then?"))
"""
AT_ONCE = f"""
from threading import Thread
{ASKING}
said = {{}}
threads = [Thread(target=lambda n=n: said.update({{n: asked(f"question {{n}}")}})) for n in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(said.items()))
"""
DIES = """
import os
from openai import OpenAI

messages = [{"role": "user", "content": "What do I pack?"}]
print(OpenAI().chat.completions.create(model="gpt-5.5", messages=messages), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


@pytest.fixture
def home(tmp_path: Path, provider: Provider) -> Home:
    return Home(tmp_path, provider.environment)


def test_a_recorded_agent_is_listed(examples: Home):
    runs = examples.runs()
    assert [(run["name"], run["status"], run["errors"]) for run in runs] == [
        ("refund_agent-1", "success", 0),
        ("research_agent-1", "success", 0),
        ("weather_agent-1", "success", 0),
    ]
    assert [run["steps"] for run in runs] == [3, 4, 4]
    assert all(run["missing"] == [] for run in runs)
    assert all(run["input_tokens"] > 0 and run["output_tokens"] > 0 for run in runs)


def test_show_prints_steps_with_their_retry(examples: Home):
    lines = examples.playhead("show", "weather_agent-1").stdout.splitlines()
    assert lines[0].startswith("weather_agent-1 success, 4 steps, ")
    assert any(line.startswith("↻ model rate_limit  chat at ") for line in lines)
    attempts = [line.split()[1:3] for line in lines if "↻ POST" in line]
    assert attempts == [["POST", "429"], ["POST", "200"]]
    shown = [line.split()[2:4] for line in lines if line.lstrip()[:1].isdigit()]
    assert sorted(shown, reverse=True) == [
        ["chat", "gpt-5.5"],
        ["chat", "gpt-5.5"],
        ["GET", "/weather?city=Rome"],
        ["GET", "/weather?city=Oslo"],
    ]


def test_show_of_a_step_has_its_messages_and_bytes(examples: Home):
    found = json.loads(examples.playhead("show", "weather_agent-1:1", "--json").stdout)
    assert [part["type"] for part in found["system_instructions"]] == []
    assert [message["role"] for message in found["input_messages"]] == ["system", "user"]
    [output] = found["output_messages"]
    assert [part["name"] for part in output["parts"] if part["type"] == "tool_call"] == [
        "weather",
        "weather",
    ]
    assert [exchange["status_code"] for exchange in found["exchanges"]] == [429, 200]
    raw = examples.playhead("show", "weather_agent-1:1", "--raw", "request").stdout
    assert json.loads(raw)["model"] == "gpt-5.5"


# The demo replays all three, too.
@pytest.mark.parametrize(
    "agent",
    ["weather", *(pytest.param(one, marks=pytest.mark.acceptance) for one in ("research", "refund"))],
)
def test_a_replay_is_identical_with_the_provider_gone(examples: Home, agent: str):
    status, report = examples.report(f"{agent}_agent-1")
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")
    assert report["fidelity"]["exact"] == report["asked"] > 0
    assert all(output["identical"] for output in report["outputs"].values())
    assert report["level"] == "strict"


BYTES = "digest of the recorded bytes"


def changed(run: Run, path: Path, old: bytes, new: bytes) -> Path:
    """The tape of ``run`` with one change in the bytes of its responses."""
    assert len(old) == len(new)
    facts, times = [], 0
    for fact in run.tape.facts():
        body = fact.body
        if fact.name == e.PLAYHEAD_EXCHANGE_DATA and body is not None and old in (body.inline or b""):
            assert body.inline is not None
            body = Content(body.digest, body.size, body.inline.replace(old, new, 1))
            fact = msgspec.structs.replace(fact, body=body)
            times += 1
        facts.append(fact)
    assert times == 1
    write_tape_file(path, MemoryTape(facts, run.tape.instance))
    return path


def test_one_changed_byte_that_the_program_does_not_look_at_is_found(examples: Home, tmp_path: Path):
    run = examples.run("weather_agent-1")
    path = changed(run, tmp_path / "changed.tape", b'"prompt_tokens":39', b'"prompt_tokens":38')
    status, report = examples.report(path, "--trust")
    assert (status, report["verdict"]) == (1, "diverged")
    first = report["first_divergence"]
    assert (first["kind"], first["step"], first["path"]) == ("response", 1, BYTES)
    assert len(report["divergences"]) == 1


def test_one_changed_byte_of_the_last_answer_shows_in_the_output(examples: Home, tmp_path: Path):
    run = examples.run("refund_agent-1")
    text = run.outputs.stdout.data.split()[0]
    path = changed(run, tmp_path / "changed.tape", b'"delta":"' + text[:1], b'"delta":"#')
    status, report = examples.report(path, "--trust")
    assert (status, report["verdict"]) == (1, "diverged")
    first = report["first_divergence"]
    assert (first["kind"], first["step"], first["path"]) == ("response", 3, BYTES)
    shown = next(one for one in report["divergences"] if one["kind"] == "stdout")
    assert (shown["step"], shown["path"], shown["now"][0]) == (3, "line 1", "#")


def test_one_changed_byte_of_an_earlier_answer_shows_in_the_next_request(examples: Home, tmp_path: Path):
    run = examples.run("weather_agent-1")
    path = changed(run, tmp_path / "changed.tape", b'"celsius":-4', b'"celsius":-5')
    status, report = examples.report(path, "--trust")
    assert (status, report["verdict"]) == (3, "blocked")
    first = report["first_divergence"]
    assert (first["kind"], first["path"]) == ("response", BYTES)
    assert first["step"] in (2, 3)
    second = next(one for one in report["divergences"] if one["kind"] == "blocked")
    assert second["step"] == 4
    assert second["path"].startswith("$.messages[")
    text = examples.playhead("replay", path, "--trust", env=examples.bare).stdout
    assert "blocked at step 4 (exit 3)" in text


def test_a_changed_prompt_is_refused_and_named(examples: Home):
    script = examples.folder / "refund_agent.py"
    source = script.read_text()
    try:
        script.write_text(source.replace("You decide refunds.", "You refuse refunds."))
        refused = examples.playhead("replay", "refund_agent-1")
        status, report = examples.report("refund_agent-1", "--force")
    finally:
        script.write_text(source)
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "error[script-changed]: refund_agent.py differs from the tape's digest"
    )
    assert status == 3
    first = report["first_divergence"]
    assert (first["step"], first["path"], first["kind"]) == (1, "$.instructions", "blocked")


def test_two_recordings_at_once_share_a_receiver_that_may_go_away(home: Home, tmp_path: Path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    first, second = home.start("record", script), None
    try:
        assert first.stdout is not None and first.stdout.readline()
        second = home.start("record", script)
        assert second.stdout is not None and second.stdout.readline()
        _, said = first.communicate("\n", timeout=PATIENCE_S)
        assert first.returncode == 0, said
        until(lambda: running(home.data_dir) is not None, "the receiver of the second recording")
        _, said = second.communicate("\n", timeout=PATIENCE_S)
        assert second.returncode == 0, said
    finally:
        for child in filter(None, (first, second)):
            child.kill()
            child.wait()
    assert [(run["status"], run["steps"], run["missing"]) for run in home.runs()] == [
        ("success", 2, []),
        ("success", 2, []),
    ]
    assert home.report("slow-2")[1]["divergences"] == []


def test_a_killed_agent_is_shown_as_far_as_it_came(home: Home, tmp_path: Path):
    script = tmp_path / "dies.py"
    script.write_text(DIES)
    done = home.playhead("record", script)
    assert done.returncode == -signal.SIGKILL
    assert "playhead: dies-1 interrupted, 1 step, " in done.stderr
    run = home.run("dies-1")
    assert [step.span.name for step in run.steps] == ["chat gpt-5.5"]
    assert run.outputs.exit is None
    assert run.gaps == []
    until(lambda: home.run("dies-1").status == "interrupted", "the run is known to be dead")


def test_a_program_that_owns_the_ports_is_no_conflict(home: Home, tmp_path: Path):
    script = tmp_path / "asks.py"
    script.write_text(SLOW.partition("sys.stdin")[0])
    taken: list[socket.socket] = []
    try:
        for port in (4317, 4318):
            try:
                taken.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue  # somebody has it already: all the better
        done = home.playhead("record", script)
    finally:
        for one in taken:
            one.close()
    assert done.returncode == 0, done.stderr
    assert len(home.runs()) == 1


def test_a_standing_receiver_is_used_and_a_failure_is_a_failure(home: Home, tmp_path: Path):
    script = tmp_path / "fails.py"
    script.write_text(SLOW.partition("sys.stdin")[0] + 'raise ValueError("no order")\n')
    with Receiver(home.data_dir, Configuration(Addresses(http_port=0, grpc_port=None))):
        done = home.playhead("record", script)
    assert done.returncode == 1
    assert "ValueError: no order" in done.stderr
    [run] = home.runs()
    assert (run["name"], run["status"], run["steps"]) == ("fails-1", "failure", 1)
    status, report = home.report("fails-1")
    assert (status, report["verdict"]) == (0, "identical")
    assert report["outputs"]["exit"]["tape"] == "ValueError: no order"


def test_causal_order_is_recorded_on_request(home: Home, tmp_path: Path):
    (tmp_path / "at_once.py").write_text(AT_ONCE)
    done = home.playhead("record", "--level", "causal", "at_once.py")
    assert done.returncode == 0, done.stderr
    status, report = home.report("last")
    assert report["level"] == "causal"
    assert (status, report["divergences"]) == (0, [])


def test_a_module_and_a_command_are_recorded_too(home: Home, tmp_path: Path):
    (tmp_path / "asks.py").write_text(SLOW.partition("sys.stdin")[0])
    assert home.playhead("record", "-m", "asks").returncode == 0
    assert home.playhead("record", "--", sys.executable, "asks.py").returncode == 0
    assert [(run["name"], run["steps"]) for run in home.runs()] == [("asks-2", 1), ("asks-1", 1)]
    assert home.report("asks-1")[0] == 0


def test_words_that_are_no_utf_8_come_to_the_replay_as_they_were(home: Home, tmp_path: Path):
    script = tmp_path / "words.py"
    script.write_text("import sys; print(ascii(sys.argv[1:]))\n")
    done = home.playhead("record", script, "x\udcff", "--token", "pass\udcffword1234", "ä")
    assert done.stdout == "['x\\udcff', '--token', 'pass\\udcffword1234', '\\xe4']\n"
    assert f"  {script} 'x\\xff' --token '[redacted]' 'ä'" in home.playhead("show").stdout.splitlines()
    assert "word1234" not in str(list(home.run("words-1").tape.facts()))
    assert home.playhead("export", "last", "-o", "words.tape").returncode == 0
    for target in ("last", "words.tape"):
        status, report = home.report(target)
        assert (status, report["divergences"]) == (0, [])
