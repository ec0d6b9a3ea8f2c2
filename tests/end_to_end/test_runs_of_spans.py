"""A run that is known only from spans is forked, compared and kept as a golden, but never exactly."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.servers.scripted import Reply, Request, ScriptedServer, chat_sse, json_reply, openai_chat
from support.starting.home import Home
from support.starting.spans_only import strip_to_spans

from playhead_cli.demo.provider import Provider
from playhead_cli.demo.shell import agents_dir
from playhead_cli.demo.tour import AGENTS

PROGRAM = """
import openai
import playhead

@playhead.tool
def weather(city: str) -> str:
    with open("called.txt", "a") as log:
        log.write(f"{city} ")
    return f"rain in {city}"

client = openai.OpenAI(max_retries=0)
said = [{"role": "system", "content": "Be brief."}]
for city in ("Oslo", "Rome", "Bern"):
    said.append({"role": "user", "content": f"{weather(city)}?"})
    asked = {"model": "gpt-4o", "messages": said}
    if city == "Rome":
        chunks = list(client.chat.completions.create(**asked, stream=True))
        text = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    else:
        text = client.chat.completions.create(**asked).choices[0].message.content
    print(text, flush=True)
    said.append({"role": "assistant", "content": text})
"""
PRINTED = "after Be brief.\nafter after Be brief.\nafter after after Be brief.\n"
OTHER = PROGRAM.replace('("Oslo", "Rome", "Bern")', '("Oslo",)')
BY_SPANS = ("--program", "agent.py")
TEST = """
def test_agent(tape):
    run = tape.replay("agent")
    assert run.report.verdict == "semantic"
    run.assert_printed("after after after Be brief.")
"""


REFUSED = 'import httpx\nhttpx.get("http://127.0.0.1:9/")\n'


def answer(request: Request) -> Reply:
    whole = openai_chat.completion(f"after {request.json['messages'][-2]['content']}")
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@dataclass
class Stage:
    home: Home
    provider: ScriptedServer

    def __call__(self, *words: str) -> tuple[subprocess.CompletedProcess[str], list[Request]]:
        """What the command said, and what came to the provider meanwhile."""
        before = len(self.provider.requests)
        return self.home.playhead(*words), self.provider.requests[before:]

    @property
    def called(self) -> str:
        """The cities that the tool was called for in the program's own folder."""
        return (self.home.folder / "called.txt").read_text()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("spans")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        home = Home(folder, {"OPENAI_BASE_URL": provider.openai_url, "OPENAI_API_KEY": "test"})
        (folder / "agent.py").write_text(PROGRAM)
        (folder / "other.py").write_text(OTHER)
        (folder / "refused.py").write_text(REFUSED)
        done = home.playhead("record", "agent.py")
        assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
        strip_to_spans(home)
        yield Stage(home, provider)


@pytest.mark.parametrize(
    ("point", "edit", "answered", "went_live"),
    [
        pytest.param(4, "messages[-1].content=edited", 3, 2, marks=pytest.mark.acceptance),
        (4, "response.choices[0].message.content=edited", 4, 1),
        pytest.param(3, 'tool_result="snow"', 3, 2, marks=pytest.mark.acceptance),
    ],
)
def test_a_fork_is_answered_from_spans_up_to_its_step(
    stage: Stage, point: int, edit: str, answered: int, went_live: int
):
    called = stage.called
    done, live = stage("fork", f"agent-1:{point}", *BY_SPANS, "--edit", edit)
    assert done.returncode == 0, done.stderr
    assert len(live) == went_live
    assert b"edited" in live[0].body or b"snow" in live[0].body
    assert "step 2 chat gpt-4o: matched by messages, model and tools" in done.stderr
    assert "step 6 chat" not in done.stderr
    rebuilt = re.search(r"semantic, never exact: (\d) responses? of the recording rebuilt", done.stderr)
    assert rebuilt is not None, done.stderr
    assert int(rebuilt[1]) == answered
    assert "not set" not in done.stderr  # it uses the credentials of the user who forks it
    assert stage.called == called
    shown, _ = stage("show", "last")
    assert f"fork of agent-1:{point}" in shown.stdout
    compared, _ = stage("diff", "agent-1", "last", "--json")
    found = json.loads(compared.stdout)
    assert found["first_difference"]["left_step"] == point
    assert found["same_steps"][: point - 1] == list(range(1, point))
    again, live = stage("replay", "last")
    assert again.stdout.splitlines()[-1] == "semantic, based on an edit (exit 0)", again.stdout
    assert not live


@pytest.mark.acceptance
def test_a_fork_without_a_step_goes_on_where_its_program_differs(stage: Stage):
    done, live = stage("fork", "agent-1", *BY_SPANS)
    assert (done.returncode, done.stdout, live) == (0, PRINTED, [])
    assert "steps 1–6 replayed" in done.stderr


def test_a_golden_is_semantic(stage: Stage):
    done, _ = stage("golden", "add", "agent-1", "--name", "agent", *BY_SPANS)
    assert "playhead: semantic, never exact: 6 answers rebuilt from spans" in done.stderr.splitlines()
    golden = "tests/goldens/agent.tape"
    assert '"playhead.fidelity": "semantic"' in (stage.home.folder / golden).read_text()
    (stage.home.folder / "tests" / "test_agent.py").write_text(TEST)
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]
    python, *_ = stage.home.words()
    for program, passes in ((PROGRAM, True), (PROGRAM.replace("Be brief", "Be long"), False)):
        (stage.home.folder / "agent.py").write_text(program)
        tested = subprocess.run(
            [python, *words], cwd=stage.home.folder, env=stage.home.bare, capture_output=True, text=True
        )
        assert (tested.returncode == 0) is passes, tested.stdout
    (stage.home.folder / "agent.py").write_text(PROGRAM)
    assert "+ now:      Be long." in tested.stdout
    replayed, live = stage("replay", golden)
    assert replayed.stdout.startswith("exact 0/6  semantic 6 "), replayed.stdout
    assert replayed.stdout.splitlines()[-1] == "semantic (exit 0)"
    updated, _ = stage("golden", "update")
    assert updated.stderr == f"playhead: {golden}: the same\n"
    forked, live = stage("fork", f"{golden}:4")
    assert "semantic, never exact: 3 responses of the recording" in forked.stderr
    assert len(live) == 2


@pytest.mark.parametrize(
    ("program", "status", "failing"),
    [
        ("agent.py", 0, set[str]()),
        ("other.py", 1, {"diverged"}),
        ("refused.py", 3, {"diverged", "blocked"}),
    ],
)
def test_a_replay_is_reported_as_junit_xml(
    stage: Stage, tmp_path: Path, program: str, status: int, failing: set[str]
):
    file = tmp_path / "report.xml"
    done, live = stage("replay", "agent-1", "--program", program, "--junitxml", str(file), "--json")
    assert (done.returncode, live) == (status, []), done.stderr
    report, [suite] = json.loads(done.stdout), ElementTree.parse(file).getroot()
    cases = suite.findall("testcase")
    told = [one for part in ("answered", "unused", "refused") for one in report[part]]
    assert len(cases) == len(told) + 1  # and the exit status
    failures = suite.findall("testcase/failure")
    assert {one.attrib["type"] for one in failures} == failing
    assert suite.attrib["failures"] == str(len(failures))
    again = f"again: playhead replay agent-1 --program {program}"
    assert all(one.text and one.text.endswith(again) for one in failures)


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ["fork", "agent-1:4"],
            "error[tape-missing]: agent-1 has no tape: only its spans were recorded",
            "hint: playhead fork agent-1 --program 'python agent.py'",
        ),
        (
            ["golden", "add", "agent-1", "--name", "x"],
            "error[tape-missing]: agent-1 has no tape: only its spans were recorded",
            "hint: playhead golden add agent-1 --program 'python agent.py'",
        ),
        (
            ["fork", "agent-1:6", "--program", "other.py"],
            "error[usage]: the program does not get to step 6 of agent-1 with the answers of its spans",
            "hint: playhead replay agent-1 --program 'python other.py'",
        ),
        (
            ["golden", "add", "agent-1", "--name", "x", "--program", "other.py"],
            "error[usage]: no golden can be made of agent-1: the program does something else than its "
            "spans say",
            "hint: playhead replay agent-1 --program 'python other.py'",
        ),
    ],
)
def test_what_cannot_be_done_is_said(stage: Stage, words: list[str], error: str, hint: str):
    done, live = stage(*words)
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0], lines[-1], live) == (2, error, hint, [])


@pytest.mark.acceptance
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_of_the_demo_says_the_same(tmp_path: Path, agent: str):
    """Its tools ask over HTTP, of which spans have no bodies: they ask again, as is allowed."""
    with Provider(0) as provider:
        home = Home(tmp_path, provider.environment)
        shutil.copy(agents_dir() / agent, tmp_path)
        recorded = home.playhead("record", agent)
        assert recorded.returncode == 0, recorded.stderr
        strip_to_spans(home)
        words = ["replay", "last", "--program", agent, "--output"]
        done = home.playhead(*words, "--allow", "127.0.0.1")
        assert done.stdout.splitlines()[-1] == "semantic (exit 0)", done.stdout
        assert recorded.stdout in done.stderr
        if agent != "research_agent.py":
            refused = home.playhead(*words)
            assert refused.stdout.splitlines()[-1] == "blocked (exit 3)"
            assert "refused: error[exchange-unmatched]: no span answers GET " in refused.stdout
