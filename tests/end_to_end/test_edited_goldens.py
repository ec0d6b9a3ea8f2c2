"""A golden that is made of an edited fork is no proof that the program was mended."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home
from support.starting.inner_pytest import run_pytest

AGENT = f"""
import playhead
{ASKING}

@playhead.tool
def weather(city):
    return {{"city": city, "sky": "clear"}}


plan = playhead.state({{"city": "Oslo"}}, name="plan")
found = weather(plan["city"])
said = answered(
    messages=[{{"role": "system", "content": "Be rude."}}, {{"role": "user", "content": str(found)}}],
)
print(said["content"])
"""
TEST = """
def test_it(tape):
    tape.replay("agent")
"""
ALLOWING = """
def test_it(tape):
    tape.replay("agent", edited="allow")
"""
EDITS = {
    "request": ("request.messages[0].content=Be kind.", '"Be rude."', '"Be kind."'),
    "response": ("response.choices[0].message.content=Hello, dear.", "", ""),
    "tool_result": ("tool_result.sky=grey", "", ""),
    "state": ("state.city=Rome", '"Oslo"', '"Rome"'),
}
"""Of each kind an edit, and how the program is mended so that it does that by itself."""
NAMES = {"request": "request of step", "response": "answer of step", "tool_result": "answer of step"}


def answer(request: Request):
    system, user = (message["content"] for message in request.json["messages"])
    return json_reply(openai_chat.completion(f"{system} {user}"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A project whose agent was recorded once."""
    folder = tmp_path_factory.mktemp("edited")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k"}
        home = Home(folder, variables)
        (folder / "tests").mkdir()
        (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
        (folder / "agent.py").write_text(AGENT)
        done = home.playhead("record", "agent.py")
        assert done.returncode == 0, done.stderr
        yield home


@pytest.fixture
def home(recorded):
    (recorded.folder / "agent.py").write_text(AGENT)
    (recorded.folder / "tests" / "test_agent.py").write_text(TEST)
    return recorded


def forked(home: Home, kind: str) -> subprocess.CompletedProcess[str]:
    """Fork with an edit, keep the fork as a golden; what that said."""
    steps = json.loads(home.playhead("show", "agent-1", "--json").stdout)["steps"]
    numbers = {one["name"].partition(" ")[0]: one["number"] for one in steps}
    at = numbers["execute_tool" if kind in ("tool_result", "state") else "chat"]
    done = home.playhead("fork", f"agent-1:{at}", "--edit", EDITS[kind][0])
    assert done.returncode == 0, done.stderr
    made = home.playhead("golden", "add", "last", "--name", "agent", "--force")
    assert made.returncode == 0, made.stderr
    return made


def under_pytest(home: Home) -> subprocess.CompletedProcess[str]:
    others = ("PYTEST", "PLAYHEAD", "OTEL", "CI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    kept |= {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": home.environ["OPENAI_BASE_URL"]}
    return run_pytest(cwd=home.folder, environ=kept)


def name_of(kind: str) -> str:
    return NAMES.get(kind, "state plan")


def kinds(few: str, *more: str) -> list[Any]:
    """Kinds of edits: one for the short suite, and the others."""
    return [few, *(pytest.param(kind, marks=pytest.mark.acceptance) for kind in more)]


@pytest.mark.parametrize("kind", kinds("request", "response", "tool_result", "state"))
def test_a_program_that_was_not_mended_fails_it(home, kind):
    made = forked(home, kind)
    assert (
        "edited at a fork or by an operator, not by the program: " + name_of(kind)
        in made.stdout + made.stderr
    )
    header = (home.folder / "tests" / "goldens" / "agent.tape").read_text()
    assert "playhead.golden.edited" in header
    done = under_pytest(home)
    assert done.returncode == 1, done.stdout
    assert f"edited at a fork or by an operator, not by the program: {name_of(kind)}" in done.stdout
    (home.folder / "tests" / "test_agent.py").write_text(ALLOWING)
    done = under_pytest(home)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 warning" in done.stdout
    assert "RestsOnAnEdit" in done.stdout


@pytest.mark.parametrize("kind", kinds("state", "request"))
def test_one_that_was_mended_passes_it_plainly(home, kind):
    forked(home, kind)
    agent = Path(home.folder, "agent.py")
    agent.write_text(AGENT.replace(*EDITS[kind][1:]))
    done = under_pytest(home)
    assert done.returncode == 0, done.stdout
    assert "1 passed in" in done.stdout


def test_the_report_says_it_too_also_of_a_fork_of_the_fork(home):
    forked(home, "response")
    done = home.playhead("replay", "last")
    assert done.returncode == 0
    assert "note: edited at a fork or by an operator, not by the program: answer of step " in done.stdout
    assert done.stdout.rstrip().endswith("identical, based on an edit (exit 0)")
    assert home.playhead("fork", "last").returncode == 0
    report = json.loads(home.playhead("replay", "last", "--json").stdout)
    assert report["verdict"] == "identical"
    assert [one.rpartition(" ")[0] for one in report["edited"]] == ["answer of step"]


def test_one_of_a_plain_fork_is_plain(home):
    assert home.playhead("fork", "agent-1:2").returncode == 0
    made = home.playhead("golden", "add", "last", "--name", "agent", "--force")
    assert "edited" not in made.stdout + made.stderr
    done = under_pytest(home)
    assert done.returncode == 0 and "1 passed in" in done.stdout, done.stdout
