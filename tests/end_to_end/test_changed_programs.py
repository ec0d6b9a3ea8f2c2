"""A replay of a program that was changed: never a wrong answer, and the report names the step.

Fifteen steps, each with a question of its own and the answer to it; a wrong answer would be seen at
once, because every answer repeats its question. The program is changed at one step: another prompt, two
calls in the other order, one call more, one call less.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

STEPS = 15
REFUSED = ("ExchangeUnmatched", "ExchangeExhausted")

SYNC = f"""
{ASKING}

def ask(question):
    try:
        answer = asked(question)
    except Exception as error:
        answer = type(error).__name__
    print(question, "->", answer, flush=True)


"""

ASYNC = """
import asyncio
import os
import httpx

client = httpx.AsyncClient(base_url=os.environ["OPENAI_BASE_URL"], timeout=60)


async def ask(question):
    asked = {"model": "gpt-5.5", "messages": [{"role": "user", "content": question}]}
    try:
        answered = (await client.post("/chat/completions", json=asked)).json()
        answer = answered["choices"][0]["message"]["content"]
    except Exception as error:
        answer = type(error).__name__
    print(f"{question} -> {answer}", flush=True)


async def main():
"""


def program(questions: list[str], asynchronous: bool) -> str:
    if not asynchronous:
        return SYNC + "".join(f"ask({question!r})\n" for question in questions)
    calls = "".join(f"    await ask({question!r})\n" for question in questions)
    return ASYNC + calls + "\n\nasyncio.run(main())\n"


def changed(how: str, step: int) -> list[str]:
    """The questions of the changed program; ``step`` from 1."""
    questions = [f"question {number}" for number in range(1, STEPS + 1)]
    at = step - 1
    if how == "prompt":
        questions[at] += ", in short"
    elif how == "reordered":
        questions[at], questions[at + 1] = questions[at + 1], questions[at]
    elif how == "added":
        questions.insert(at, "one question more")
    elif how == "repeated":
        questions.insert(at, questions[at])
    elif how == "removed":
        del questions[at]
    return questions


@dataclass
class Recorded:
    home: Home
    script: Path
    name: str
    asynchronous: bool


SHORT = ("sync-strict", "async-causal")
KINDS = (*SHORT, "async-strict", "sync-causal")


def changed_at(*steps: int) -> pytest.MarkDecorator:
    """Each step once, by turns in two kinds of programs; in every kind where there is time for that."""
    few = list(zip(itertools.cycle(SHORT), steps, strict=False))
    others = [one for one in itertools.product(KINDS, steps) if one not in few]
    long = [pytest.param(*one, marks=pytest.mark.acceptance) for one in others]
    return pytest.mark.parametrize(("recorded", "step"), [*few, *long], indirect=["recorded"])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """The program of each kind, recorded once."""

    def answer(request: Request) -> Any:
        question = request.json["messages"][-1]["content"]
        return json_reply(openai_chat.completion(f"the answer to {question}"))

    @functools.cache
    def recording(of: str) -> Recorded:
        kind, level = of.split("-")
        folder = tmp_path_factory.mktemp("home")
        script = folder / "agent.py"
        script.write_text(program(changed("", 1), kind == "async"))
        with ScriptedServer() as server:
            server.on(lambda request: True, answer, repeat=True)
            home = Home(folder, {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "test"})
            done = home.playhead("record", "--level", level, script)
            assert done.returncode == 0, done.stderr
        return Recorded(home, script, "agent-1", kind == "async")

    return recording


@pytest.fixture
def recorded(request: pytest.FixtureRequest, recordings: Callable[[str], Recorded]) -> Recorded:
    return recordings(request.param)


def replayed(recorded: Recorded, questions: list[str], *words: str) -> tuple[int, dict[str, Any], str]:
    recorded.script.write_text(program(questions, recorded.asynchronous))
    done = recorded.home.playhead(
        "replay", recorded.name, "--force", "--json", "--output", *words, env=recorded.home.bare
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def answers(said: str) -> list[tuple[str, str]]:
    return re.findall(r"^(.*question.*) -> (.*)$", said, re.MULTILINE)


def never_wrong(said: str) -> int:
    """No answer is another question's; how many were refused."""
    found = answers(said)
    for question, answer in found:
        assert answer in (f"the answer to {question}", *REFUSED), (question, answer)
    return sum(answer in REFUSED for _, answer in found)


@changed_at(1, 8, 15)
def test_a_changed_prompt_is_refused_at_its_step(recorded: Recorded, step: int):
    status, report, said = replayed(recorded, changed("prompt", step))
    assert (status, report["verdict"], never_wrong(said)) == (3, "blocked", 1)
    first = report["first_divergence"]
    assert (first["kind"], first["step"], first["path"]) == ("blocked", step, "$.messages[0].content")
    assert (first["tape"], first["now"]) == (f'"question {step}"', f'"question {step}, in short"')
    assert report["fidelity"]["exact"] == STEPS - 1
    assert len(report["unused"]) == 1


@changed_at(1, 14)
def test_reordered_calls_get_their_own_answers_and_are_named(recorded: Recorded, step: int):
    status, report, said = replayed(recorded, changed("reordered", step))
    assert (status, report["verdict"], never_wrong(said)) == (1, "diverged", 0)
    moved = [one for one in report["divergences"] if one["kind"] == "moved"]
    assert [one["step"] for one in moved] == [step + 1, step]
    assert report["first_divergence"] == moved[0]
    assert moved[0]["detail"].startswith("answered by main")
    assert report["unused"] == []


@changed_at(1, 15)
def test_an_added_call_is_refused_and_named(recorded: Recorded, step: int):
    status, report, said = replayed(recorded, changed("added", step))
    assert (status, report["verdict"], never_wrong(said)) == (3, "blocked", 1)
    blocked = [one for one in report["divergences"] if one["kind"] == "blocked"]
    assert [one["now"] for one in blocked] == ['"one question more"']
    assert report["first_divergence"] == blocked[0]
    assert blocked[0]["step"] in (step, step - 1, None)
    assert report["unused"] == []


@changed_at(8)
def test_a_repeated_call_is_refused_as_one_too_many(recorded: Recorded, step: int):
    status, report, said = replayed(recorded, changed("repeated", step))
    assert (status, never_wrong(said)) == (3, 1)
    [blocked] = [one for one in report["divergences"] if one["kind"] == "blocked"]
    assert blocked["detail"].endswith("every recording of it was already used")
    assert report["fidelity"]["blocked"] == 1


@changed_at(1, 8)
def test_a_removed_call_is_named_as_unused(recorded: Recorded, step: int):
    status, report, said = replayed(recorded, changed("removed", step))
    assert (status, report["verdict"], never_wrong(said)) == (1, "diverged", 0)
    [unused] = [one for one in report["divergences"] if one["kind"] == "unused"]
    assert unused["step"] == step
    assert len(report["unused"]) == 1
    assert all(one["kind"] in ("moved", "unused", "stdout") for one in report["divergences"])


@pytest.mark.parametrize("recorded", ["sync-strict"], indirect=True)
def test_junit_names_the_same(recorded: Recorded, tmp_path: Path):
    path = tmp_path / "report.xml"
    replayed(recorded, changed("prompt", 8), "--junitxml", str(path))
    suite = ElementTree.parse(path).getroot()[0]
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed[0] == "8 chat gpt-5.5"
    failure = cases["8 chat gpt-5.5"].find("failure")
    assert failure is not None and failure.text is not None
    assert "- recorded: question 8" in failure.text
    assert "+ now:      question 8, in short" in failure.text
    assert failure.text.endswith("again: playhead replay agent-1 --force")
    assert suite.get("failures") == str(len(failed))
    assert suite.get("tests") == str(len(cases))
