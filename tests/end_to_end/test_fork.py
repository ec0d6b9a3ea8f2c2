"""A run is played up to a step, something is changed there, and it goes on for real."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.long import long
from support.servers.scripted import Reply, Request, ScriptedServer, chat_sse, json_reply, openai_chat
from support.starting.branching import environment, playhead, stored
from support.starting.running import AGENTS

from playhead_replay import Run
from playhead_replay.forks.outcome import ForkOutcome

STEPS = 20
SCRIPT = "forked.py"
LOG = re.compile(r"^(\d+) (.*)$", re.M)


def answer(request: Request) -> Reply:
    """What follows from the request alone: how long it is, of which model, and how it ends."""
    messages = request.json["messages"]
    last = messages[-1]["content"][-14:]
    whole = openai_chat.completion(f"{len(messages)} {request.json['model']} {last} w{len(messages)}")
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@dataclass
class Stage:
    """A recorded run, its provider, and the command line."""

    folder: Path
    provider: ScriptedServer
    environ: dict[str, str]

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def fork(self, *words: str) -> tuple[subprocess.CompletedProcess[str], list[Request]]:
        """Run ``playhead fork``; what it said, and what came to the provider meanwhile."""
        before = len(self.provider.requests)
        done = playhead("fork", *words, environ=self.environ, cwd=self.work)
        return done, self.provider.requests[before:]

    def bodies(self, run: Run, upto: int = 1 << 30) -> list[bytes]:
        """The requests that the steps before that one made of a model."""
        return [
            exchange.request
            for step in run.steps[: upto - 1]
            for exchange in run.exchanges_of(step)
            if exchange.exchange.id.kind == "http"
        ]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("forks")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        made = Stage(folder, provider, environment(folder, provider.url))
        made.work.mkdir()
        for name in (SCRIPT, "asking.py"):
            shutil.copy(AGENTS / name, made.work)
        left_out = ("PLAYHEAD_ENDPOINT", "PLAYHEAD_QUIET")
        environ = {name: value for name, value in made.environ.items() if name not in left_out}
        made.environ = environ
        done = playhead("record", SCRIPT, str(STEPS), environ=environ, cwd=made.work)
        assert done.returncode == 0, done.stderr
        yield made


def files_of(done: subprocess.CompletedProcess[str]) -> Path:
    found = re.search(r"its files are in (.*)$", done.stderr, re.M)
    assert found is not None, done.stderr
    return Path(found[1])


def fork_and_check(stage: Stage, number: int, kind: str) -> None:
    """Fork at a step with one kind of edit: what came before is from tape, what follows is live."""
    with stored(stage.folder, "forked-1") as [origin]:
        before = stage.bodies(origin, number)
        whole = stage.bodies(origin)
        tool = "execute_tool" in origin.steps[number - 1].span.name
        recorded = [json.loads(body) for body in whole]
        origin_tokens = origin.usage.input_tokens
    left = {path.name: path.read_bytes() for path in stage.work.iterdir() if path.is_file()}
    edits = {
        "nothing": [],
        "request": ["request.model=gpt-4.1"],
        "message": ["messages[-1].content=something else"],
        "response": ["response.choices[0].message.content=what was edited w9"],
        "tool": ['tool_result={"word":"w","means":"something edited"}'],
    }[kind]
    words = [word for edit in edits for word in ("--edit", edit)]
    done, live = stage.fork(f"forked-1:{number}", *words)
    assert done.returncode == 0, done.stderr
    with stored(stage.folder, "last", "forked-1") as [fork, after]:
        outcome = ForkOutcome.of(fork)
        assert fork.mode == "fork"
        assert fork.origin.startswith(after.trace_id) and fork.origin.endswith(f":{number}")
        assert stage.bodies(after) == whole
        assert stage.bodies(fork, number) == before
        assert len(fork.steps) == STEPS
        answered = kind == "response" or (kind == "tool" and tool)
        assert outcome.played_steps == list(range(1, number + answered))
        assert outcome.live_steps == list(range(number + answered, STEPS + 1))
        assert outcome.changed == answered
        # What its tape answered was not spent again, though no SDK says that these are calls.
        played = len(before) + (kind == "response")
        tokens = origin_tokens // len(whole)
        assert fork.played_usage.input_tokens == played * tokens
        assert fork.usage.input_tokens == (len(whole) - played) * tokens
        # Every step of it can be looked at, whoever answered it.
        assert all(fork.messages(step).output for step in fork.steps if "chat" in step.span.name)
    assert len(live) == len(whole) - len(before) - (kind == "response")
    if kind in ("request", "message"):
        wanted = recorded[len(before)]
        if kind == "request":
            wanted["model"] = "gpt-4.1"
        else:
            wanted["messages"][-1]["content"] = "something else"
        assert live[0].json == wanted
        assert int(live[0].headers["content-length"]) == len(live[0].body)
    # The origin's files are as they were; the fork has its own.
    assert {path.name: path.read_bytes() for path in stage.work.iterdir() if path.is_file()} == left
    log = (files_of(done) / "log.txt").read_text()
    assert [int(line) for line, _ in LOG.findall(log)] == list(range(0, STEPS, 4))
    if kind == "response" and number < STEPS:
        assert "what was edited w9" in log
    if kind == "tool" and tool and number % 4 == 2:
        assert "something edited" in log
    known = "\n".join(log.splitlines()[: (number - 1) // 4])
    assert (stage.work / "log.txt").read_text().startswith(known)


KINDS = [(5, "request"), long(7, "response"), (2, "tool"), long(10, "nothing")]


@pytest.mark.parametrize(("number", "kind"), KINDS)
def test_a_fork_goes_on_from_its_step(stage: Stage, number: int, kind: str):
    fork_and_check(stage, number, kind)


def every_kind() -> Iterator[tuple[int, str]]:
    for number in range(1, STEPS + 1):
        yield number, "nothing"
        if number % 2:
            yield from ((number, kind) for kind in ("request", "message", "response"))
        else:
            yield number, "tool"


@pytest.mark.acceptance
@pytest.mark.parametrize(("number", "kind"), list(every_kind()))
def test_a_fork_at_every_step(stage: Stage, number: int, kind: str):
    fork_and_check(stage, number, kind)


def test_a_changed_program_is_played_as_far_as_it_agrees(stage: Stage):
    script = stage.work / SCRIPT
    source = script.read_text()
    try:
        script.write_text(source.replace('f"question {step}"', 'f"question {step + (step == 8)}"'))
        done, live = stage.fork("forked-1")
    finally:
        script.write_text(source)
    assert done.returncode == 0, done.stderr
    assert "the program no longer matches the recording" in done.stderr
    assert 'now "question 9"' in done.stderr
    assert live[0].json["messages"][-1]["content"] == "question 9"
    with stored(stage.folder, "last") as [fork]:
        outcome = ForkOutcome.of(fork)
    assert (outcome.played_steps[-1], outcome.live_steps[0]) == (8, 9)


def test_a_program_that_asks_otherwise_before_the_step_is_refused(stage: Stage):
    script = stage.work / SCRIPT
    source = script.read_text()
    try:
        script.write_text(source.replace('f"question {step}"', 'f"question {step + (step == 4)}"'))
        done, live = stage.fork("forked-1:13")
    finally:
        script.write_text(source)
    assert done.returncode == 3, done.stderr
    assert "refused: main#" in done.stderr
    assert live == []


def test_offline_nothing_goes_to_the_world(stage: Stage):
    done, live = stage.fork("forked-1:3", "--edit", "response.choices[0].message.content=x", "--offline")
    assert done.returncode == 3, done.stderr
    assert "the fork is offline" in done.stderr
    assert live == []


def test_a_fork_of_a_fork_rests_on_both(stage: Stage):
    done, _ = stage.fork("forked-1:9", "--edit", "model=gpt-4.1")
    assert done.returncode == 0, done.stderr
    with stored(stage.folder, "last") as [first]:
        name, bodies = first.name, stage.bodies(first, 17)
    done, live = stage.fork(f"{name}:17", "--edit", "model=gpt-4.2")
    assert done.returncode == 0, done.stderr
    assert live[0].json["model"] == "gpt-4.2"
    with stored(stage.folder, "last") as [second]:
        assert stage.bodies(second, 17) == bodies
        assert all(second.messages(step).output for step in second.steps if "chat" in step.span.name)
        name = second.name
    replayed = playhead("replay", name, environ=stage.environ, cwd=stage.work)
    # The edits are of the runs: the program did not make them, and need not.
    assert replayed.returncode == 0, replayed.stdout
    assert "is not here" not in replayed.stdout + replayed.stderr


def test_edits_come_from_a_patch_file_and_an_editor_and_a_fork_is_made_several_times(stage: Stage):
    patch = stage.folder / "edits.txt"
    patch.write_text("# another model\nrequest.model=gpt-4.3\n")
    editor = stage.folder / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/gpt-[0-9.a-z]*/gpt-4.4/' \"$1\"\n")
    editor.chmod(0o755)
    done, live = stage.fork(f"forked-1:{STEPS - 1}", "--patch", str(patch), "--times", "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("origin unchanged") == 2
    assert [one.json["model"] for one in live].count("gpt-4.3") == 2
    stage.environ["EDITOR"] = str(editor)
    done, live = stage.fork(f"forked-1:{STEPS - 1}", "--edit")
    assert done.returncode == 0, done.stderr
    assert live[0].json["model"] == "gpt-4.4"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["forked-1:3", "--edit", "request.modle=x"], "modle matches nothing"),
        (["forked-1:3", "--edit", "request.model"], "request.model is no edit"),
        (["forked-1:21"], "forked-1 has steps 1 to 20, not 21"),
        (["forked-1", "--edit", "model=x"], "an edit needs a step"),
        (["nobody-1:3"], 'no run is called "nobody-1"'),
    ],
)
def test_bad_input_is_refused_in_a_sentence(stage: Stage, words: list[str], said: str):
    done, live = stage.fork(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("error[") == 1
    assert "hint:" in done.stderr
    assert live == []


def test_a_run_that_has_ended_is_not_resumed(stage: Stage):
    done = playhead("resume", "forked-1", environ=stage.environ, cwd=stage.work)
    assert done.returncode == 2
    assert "forked-1 has come to its end: there is nothing to resume" in done.stderr
    assert "playhead fork forked-1:STEP" in done.stderr
