"""`up`, `spool` and `doctor`: the receiver and what has not reached it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.ports import nobody
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.handmade import INSTANCE, HandMade

from playhead_cli.doctor.source_coverage import Import, imports_of
from playhead_core.tape.frames import MAGIC, Header, SpanRecord, encode
from playhead_receiver.system.writer_lock import running


@pytest.fixture
def up(playhead: CommandLine) -> Iterator[tuple[Any, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "playhead_cli", "up"]
    command += ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    child = subprocess.Popen(
        [*command, "--json", "--data-dir", str(playhead.data_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    yield json.loads(child.stdout.readline()), child
    child.kill()
    child.communicate()


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "spool"
    monkeypatch.setenv("PLAYHEAD_SPOOL_DIR", str(folder))
    return folder


def leave(spool: Path, made: HandMade) -> None:
    """What an agent that died leaves in a spool."""
    home = spool / made.instance.hex()
    home.mkdir(parents=True, mode=0o700)
    records = [Header(made.instance, made.at_ns, resource={"service.name": "refund"}), *made.facts]
    records += [SpanRecord(span.otlp) for span in made.spans]
    (home / "00000001.tape").write_bytes(MAGIC + b"".join(encode(one) for one in records))


def test_up_says_where_it_listens_and_stops_at_a_signal(up: Any, playhead: CommandLine):
    said, child = up
    assert said["data_dir"] == str(playhead.data_dir)
    assert running(playhead.data_dir).http == said["http"]  # type: ignore[union-attr]
    port = int(said["http"].rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port)).close()
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == 0
    assert running(playhead.data_dir) is None


def test_up_refuses_a_folder_that_is_written_to(up: Any, playhead: CommandLine):
    done = playhead("up", "--http-port", "0", "--grpc-port", "0")
    assert done.status == 1
    assert done.err.startswith("error[store-busy]: process")


def test_up_refuses_a_port_that_is_taken(playhead: CommandLine):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = playhead("up", "--http-port", str(port), "--grpc-port", "0")
    assert done.status == 2
    assert done.err.splitlines()[0] == (
        f"error[usage]: port {port} on 127.0.0.1 is in use by another program"
    )
    assert done.err.splitlines()[-1] == "hint: choose another, or any free one: --http-port 0"


def test_an_empty_spool_is_said(playhead: CommandLine, spool: Path):
    done = playhead("spool", "ls")
    assert (done.status, done.out, done.err) == (0, "", "playhead: the spool is empty\n")
    assert json.loads(playhead("spool", "ls", "--json").out) == {"schema_version": 1, "pending": []}


def test_what_a_dead_agent_left_is_listed_and_pushed(playhead: CommandLine, spool: Path):
    made = refund()
    leave(spool, made)
    [line] = playhead("spool", "ls").lines
    assert line.split()[:5] == [INSTANCE.hex()[:8], "refund", "dead", str(len(made.facts)), "facts"]
    [pending] = json.loads(playhead("spool", "ls", "--json").out)["pending"]
    assert (pending["facts"], pending["spans"]) == (len(made.facts), len(made.spans))
    done = playhead("spool", "push", "--json")
    found = json.loads(done.out)
    assert (done.status, found["problem"], found["pending"]) == (0, None, [])
    assert (found["facts"], found["spans"]) == (len(made.facts), len(made.spans))
    assert playhead("ls").lines[1].split()[:2] == ["refund-1", "failure"]
    assert playhead("spool", "ls").out == ""


def test_what_cannot_be_pushed_stays(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLAYHEAD_ENDPOINT", nobody())
    leave(spool, refund())
    done = playhead("spool", "push")
    assert done.status == 1
    assert "playhead: not delivered:" in done.err
    assert len(playhead("spool", "ls").lines) == 1


def marks(playhead: CommandLine, *words: str) -> list[tuple[str, str]]:
    found = json.loads(playhead("doctor", *words, "--json").out)["findings"]
    return [(one["mark"], one["text"]) for one in found]


def test_the_doctor_looks_at_everything(playhead: CommandLine, spool: Path):
    texts = dict((text, mark) for mark, text in marks(playhead, "--python", sys.executable))
    assert all(mark != "bad" for mark in texts.values())
    assert any(text.startswith("playhead ") and sys.executable in text for text in texts)
    assert any(text.startswith("openai ") and "entry point: " in text for text in texts)
    assert texts["no receiver runs: playhead record embeds one"] == "good"
    assert texts["spool: nothing undelivered"] == "good"
    assert playhead("doctor", "--python", sys.executable).status == 0


def test_the_doctor_finds_a_receiver_and_what_it_did_not_get(
    up: Any, playhead: CommandLine, spool: Path
):
    said, child = up
    leave(spool, refund())
    found = marks(playhead)
    where = f"receiver: process {child.pid} takes records at {said['http']} and {said['grpc']}"
    assert ("good", where) in found
    assert any(mark == "warning" and "of a dead process undelivered" in text for mark, text in found)


def test_the_doctor_names_an_endpoint_that_does_not_answer(
    playhead: CommandLine, spool: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLAYHEAD_ENDPOINT", nobody())
    bad = [text for mark, text in marks(playhead) if mark == "bad"]
    assert len(bad) == 1
    assert bad[0].startswith(f"{nobody()}: [Errno 111] Connection refused")
    assert playhead("doctor").status == 1


def test_the_doctor_reads_a_script(playhead: CommandLine, spool: Path, tmp_path: Path):
    script = tmp_path / "agent.py"
    script.write_text("import time\nfrom openai import OpenAI\n\nimport psycopg2, json\n")
    assert list(imports_of(script)) == [
        Import("time", 1),
        Import("openai", 2),
        Import("psycopg2", 4),
        Import("json", 4),
    ]
    assert marks(playhead, str(script))[:2] == [
        ("good", "agent.py imports openai (bytes and spans)"),
        ("warning", "psycopg2 agent.py:4: the tape does not hold its queries"),
    ]


def test_the_doctor_names_what_is_not_covered_with_file_line_and_advice(
    playhead: CommandLine, spool: Path, tmp_path: Path
):
    (tmp_path / "agent.py").write_text(
        "import os, signal\nfrom time import process_time as spent\nimport tools\nimport torch\n"
        "print(os.getloadavg())\nprint(f'{id(tools)}')\nsignal.alarm(3)\nspent()\n"
    )
    (tmp_path / "tools.py").write_text("import pymongo\n\nstate = open('/proc/self/status').read()\n")
    done = playhead("doctor", str(tmp_path / "agent.py"), "--json")
    found = [one for one in json.loads(done.out)["findings"] if one["mark"] == "warning"]
    assert [one["text"] for one in found if ".py:" in one["text"]] == [
        "torch agent.py:4: the tape does not hold its random numbers",
        "os.getloadavg agent.py:5: the tape does not hold the load of the machine",
        "id() agent.py:6: the tape does not hold addresses of objects",
        "signal.alarm agent.py:7: the tape does not hold when the signal comes",
        "time.process_time agent.py:8: the tape does not hold processor time",
        "pymongo tools.py:1: the tape does not hold its commands",
        "/proc tools.py:3: the tape does not hold what the kernel says there",
    ]
    assert all(one["hint"] for one in found if ".py:" in one["text"])
    assert found[0]["hint"] == "call torch.manual_seed(0)"


@pytest.mark.parametrize("agent", ["weather", "research", "refund"])
def test_the_doctor_finds_nothing_in_the_examples(playhead: CommandLine, spool: Path, agent: str):
    script = Path(__file__).parents[3] / "examples" / f"{agent}_agent.py"
    found = marks(playhead, str(script), "--python", sys.executable)
    named = f"{agent}_agent.py: nothing is known that the tape would not hold"
    assert ("good", named) in found
    assert [text for mark, text in found if mark != "good" and ".py" in text] == []


def test_the_doctor_reads_a_run(playhead: CommandLine):
    made = refund(
        **{
            "playhead.run.patched": ["openai", "httpx2"],
            "playhead.run.unpatched": ["anthropic: no _base_client"],
            "playhead.run.hash_seed": "random",
        }
    )
    made.facts.pop(5)
    store_run(playhead.data_dir, made)
    assert marks(playhead, "last") == [
        ("good", "refund-1: agent.py --order 81 (strict order, failure)"),
        ("good", "patched: openai, httpx2"),
        ("warning", "not patched: anthropic: no _base_client"),
        ("warning", "PYTHONHASHSEED was random: the order of sets is not reproducible"),
        ("bad", "1 fact missing: 5 to 5: it cannot be replayed"),
    ]


def test_the_doctor_prints_settings_and_their_origin(
    playhead: CommandLine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLAYHEAD_TOKEN", "secret-token")
    monkeypatch.setenv("PLAYHEAD_LEVEL", "causal")
    monkeypatch.setenv("PLAYHEAD_STORE", "postgresql://bob:secret-word@db/runs")
    done = playhead("doctor", "--config", "--json")
    found = json.loads(done.out)["settings"]
    assert found["level"] == {"value": "causal", "origin": "environment (PLAYHEAD_LEVEL)"}
    assert found["data_dir"] == {"value": str(playhead.data_dir), "origin": "flag"}
    assert found["heartbeat_ms"] == {"value": 30000, "origin": "default"}
    assert found["store"]["value"] == "postgresql://db/runs"
    assert "secret-token" not in done.out
    text = playhead("doctor", "--config").out
    assert "secret-token" not in text and "secret-word" not in text
    assert any(line.split()[:2] == ["level", "causal"] for line in text.splitlines())
    assert os.environ["PLAYHEAD_TOKEN"] == "secret-token"
