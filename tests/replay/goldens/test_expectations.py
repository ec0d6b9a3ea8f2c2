"""Goldens that say what a later run has to fulfil; models that answer anew; recorded tools as stubs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home
from support.starting.inner_pytest import run_pytest

from playhead_replay.goldens.golden_file import read_stored

AGENT = (
    f"""
import asyncio, json, sys, time
import playhead
{ASKING}"""
    + """

PROMPT = "You refund."

@playhead.tool(effect="read")
def look(order):
    print("really looked", file=sys.stderr)
    return {"order": order, "total": 490, "at": time.time()}

@playhead.tool(effect="write")
async def refund(order, amount):
    print("really refunded", file=sys.stderr)
    return f"{amount} refunded"

async def main():
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": "Refund order 81"}]
    while True:
        answer = answered(messages=messages)
        messages.append(answer)
        calls = answer.get("tool_calls") or ()
        for call in calls:
            function = call["function"]
            result = globals()[function["name"]](**json.loads(function["arguments"]))
            result = await result if asyncio.iscoroutine(result) else result
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        if not calls:
            print(answer["content"])
            return

asyncio.run(main())
"""
)

TEST = """
def test_refund(tape):
    tape.replay("refund")
"""

TOOLS = """
import pytest

def test_tools(tape):
    tools = tape.tools("refund")
    assert sorted(tools) == ["look", "refund"]
    seen = tools["look"](order=81)
    assert seen["total"] == 490 and tools["look"](81) == seen
    assert tools["refund"](order=81, amount=490) == "490 refunded"
    with pytest.raises(LookupError) as missed:
        tools["look"](order=99)
    assert "the tape has no look(order=99)" in str(missed.value)
    assert "it has look(order=81)" in str(missed.value)
    with pytest.raises(LookupError, match="calls no tool pay"):
        tools["pay"]
    with pytest.raises(TypeError, match="give its arguments by name"):
        tools["refund"](81, 490)
"""


def answer(request: Request) -> Reply:
    """What a model says: a refund that the prompt decides."""
    messages = request.json["messages"]
    prompt, told = messages[0]["content"], sum(one["role"] == "tool" for one in messages)
    amount = 49 if "rightly" in prompt else 490
    calls = [("look", '{"order": 81}'), ("refund", '{"order": 81, "amount": 490}')]
    if "twice" in prompt:
        calls.insert(1, calls[0])
    if "elsewhere" in prompt:
        calls[0] = ("look", '{"order": 99}')
    if told == len(calls):
        return json_reply(openai_chat.completion(f"{amount} EUR are on their way"))
    call = openai_chat.tool_call(f"call_{told}", *calls[told])
    return json_reply(openai_chat.completion(None, tool_calls=[call], finish_reason="tool_calls"))


class Project:
    """A repository with an agent that refunds too much, a golden of that, and a test."""

    def __init__(self, folder: Path, provider: ScriptedServer) -> None:
        self.folder = folder
        self.provider = provider
        variables = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "sk-real"}
        self.home = Home(folder, variables)
        self.goldens = folder / "tests" / "goldens"

    def prompt(self, text: str) -> None:
        (self.folder / "agent.py").write_text(AGENT.replace("You refund.", text))

    def pytest(self, *words: str, **environ: str) -> tuple[subprocess.CompletedProcess[str], int]:
        """Run pytest; what it did, and how many requests came to the provider meanwhile."""
        before = len(self.provider.requests)
        kept = {name: value for name, value in self.home.environ.items() if name != "CI"}
        kept |= {"PLAYHEAD_QUIET": "1", **environ}
        done = run_pytest(*words, cwd=self.folder, environ=kept)
        return done, len(self.provider.requests) - before


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedServer]:
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        yield provider


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, provider: ScriptedServer) -> Project:
    """A bad run, recorded and kept with what was expected of it."""
    project = Project(tmp_path_factory.mktemp("refunds"), provider)
    (project.folder / "tests").mkdir()
    (project.folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (project.folder / "tests" / "test_refund.py").write_text(TEST)
    project.prompt("You refund.")
    done = project.home.playhead("record", "agent.py")
    assert done.stdout == "490 EUR are on their way\n", done.stderr
    words = ["golden", "add", "agent-1", "--name", "refund", "--description", "A comma was lost."]
    expect = ["--expect", "printed~49 EUR", "--expect", "printed!~490", "--expect", "calls.refund=1"]
    done = project.home.playhead(*words, *expect)
    assert done.returncode == 0, done.stderr
    assert (
        "this run does not meet: printed ~ 49 EUR, printed !~ 490; it has 490 EUR are on their way"
        in done.stderr
    )
    assert "the test fails until the program is fixed" in done.stderr
    return project


@pytest.fixture
def project(tmp_path: Path, kept: Project) -> Project:
    """A copy of it, where a test may change things."""
    shutil.copytree(kept.folder, tmp_path / "copy")
    return Project(tmp_path / "copy", kept.provider)


def test_what_a_golden_is_kept_for_is_part_of_it(kept: Project):
    purpose = read_stored(kept.goldens / "refund.tape").purpose
    assert purpose.description == "A comma was lost."
    assert list(purpose.expect) == ["printed~49 EUR", "printed!~490", "calls.refund=1"]


def test_the_golden_of_a_bad_run_is_red_without_the_mend_and_says_each_thing_once(project: Project):
    done, live = project.pytest()
    assert (done.returncode, live) == (1, 0), done.stdout
    assert "golden refund: not as expected (tests/goldens/refund.tape)" in done.stdout
    assert (
        "  - expected: printed ~ 49 EUR\n  - expected: printed !~ 490\n"
        "  + now:      490 EUR are on their way\n" in done.stdout
    )
    assert "calls.refund" not in done.stdout
    for said in ("490 EUR are on their way", "playhead diff ", "again: ", "pytest tests/"):
        assert done.stdout.count(said) == 1, done.stdout
    project.prompt("You refund rightly.")
    done, live = project.pytest()
    assert (done.returncode, live) == (1, 0)
    for said in ("blocked", "You refund rightly.", "- recorded: You refund.", "unused", "differ at"):
        assert done.stdout.count(said) == (0 if said == "differ at" else 1), done.stdout
    assert "after that: 5 recordings unused\n" in done.stdout
    assert "try:    the same with --playhead-live=model, tools from the tape" in done.stdout
    assert (project.folder / ".playhead" / ".gitignore").read_text() == "*\n"


def test_a_mended_prompt_is_tried_with_the_model_live_and_the_tools_from_the_tape(project: Project):
    project.prompt("You refund rightly.")
    done, live = project.pytest("--playhead-live=model")
    assert (done.returncode, live) == (0, 3), done.stdout
    credentials = {one.headers["authorization"] for one in project.provider.requests[-3:]}
    assert credentials == {"Bearer sk-real"}
    done, live = project.pytest("--playhead-live=model", "--playhead-update")
    assert (done.returncode, live) == (4, 0)
    assert "record again with --playhead-record=all" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("prompt", "live", "said"),
    [
        long("You do not mend it.", 3, "expected: printed !~ 490"),
        long("You look twice, and refund rightly.", 4, ""),
        (
            "You look elsewhere, and refund rightly.",
            1,
            "order changed\n  - recorded: 81\n  + now:      99",
        ),
    ],
)
def test_tools_answer_from_the_tape_however_often_and_refuse_what_it_does_not_have(
    project: Project, prompt: str, live: int, said: str
):
    project.prompt(prompt)
    done, requests = project.pytest("--playhead-live=model")
    assert requests == live, done.stdout
    assert done.returncode == (1 if said else 0), done.stdout
    assert said in done.stdout


def test_models_are_not_asked_under_ci_unless_that_is_allowed(project: Project):
    done, live = project.pytest("--playhead-live=model", CI="true")
    assert (done.returncode, live) == (4, 0)
    assert "--playhead-live goes live, which is refused under CI unless PLAYHEAD_PYTEST_LIVE=1" in (
        done.stderr + done.stdout
    )
    done, live = project.pytest("--playhead-live=model", CI="true", PLAYHEAD_PYTEST_LIVE="1")
    assert live == 3, done.stdout


def test_recorded_tools_serve_as_stubs(project: Project):
    (project.folder / "tests" / "test_refund.py").write_text(TOOLS)
    done, live = project.pytest()
    assert (done.returncode, live) == (0, 0), done.stdout
    assert os.listdir(project.goldens) == ["refund.tape"]
