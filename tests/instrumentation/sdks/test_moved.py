"""A version of an SDK that has moved what is patched: bytes, a sentence, an unharmed program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.answers.sdk_answers import Ollama, Said
from support.answers.sdk_table import APART
from support.servers.scripted import ScriptedServer
from support.starting.home import Home

PROGRAM = """
import ollama, sys
messages = [{"role": "user", "content": "Hello"}]
answer = ollama.Client(host=sys.argv[1]).chat(model="m-1", messages=messages)
print(answer.message.content)
"""
LACKS = "has no ollama._client.Client._request: calls through it get no span of their own"


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A copy of an SDK in which the entry point has another name."""
    folder = tmp_path / "libraries"
    for source in APART.glob("ollama*"):
        shutil.copytree(source, folder / source.name)
    client = folder / "ollama" / "_client.py"
    text = client.read_text("utf-8")
    assert "def _request(" in text
    client.write_text(text.replace("_request(", "_asks("), "utf-8")
    return folder


def test_an_sdk_that_has_moved_its_entry_point(tmp_path: Path, moved: Path):
    home = Home(tmp_path, {"PYTHONPATH": str(moved)})
    script = tmp_path / "agent.py"
    script.write_text(PROGRAM)
    with ScriptedServer() as server:
        server.script([Ollama().reply(Said("Hi there"))])
        done = home.playhead("record", script, server.url)
    assert (done.returncode, done.stdout) == (0, "Hi there\n")
    assert "cannot record ollama: no Client._request" in done.stderr
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["steps"], run["models"], run["input_tokens"]) == (1, ["m-1"], 12)
    told = " ".join(home.playhead("doctor").stdout.split())
    assert LACKS in told


def test_nothing_is_said_of_an_sdk_that_has_it(tmp_path: Path):
    home = Home(tmp_path, {"PYTHONPATH": str(APART)})
    told = " ".join(home.playhead("doctor").stdout.split())
    assert "ollama 0." in told and "get no span of their own" not in told
