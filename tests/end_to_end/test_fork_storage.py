"""A fork costs what it adds, not what it replays; and its folder lives as long as it does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import environment, playhead, stored

STEPS = 12
ANSWER_BYTES = 60_000
"""Of each answer; nothing in it repeats, so that no packing hides what is kept twice."""

AGENT = f"""
import sys
{ASKING}
history = []
for step in range({STEPS}):
    history.append({{"role": "user", "content": f"step {{step}}"}})
    answer = answered(messages=history)
    history.append({{"role": "assistant", "content": answer["content"]}})
    if "--write" in sys.argv:
        with open("log.txt", "a") as log:
            log.write(f"{{step}}\\n")
print(len(history))
"""


def answer(request: Request) -> Reply:
    seed = request.body
    text = "".join(hashlib.sha256(seed + bytes([n // 256, n % 256])).hexdigest() for n in range(938))
    return json_reply(openai_chat.completion(text[:ANSWER_BYTES]))


@dataclass
class Stage:
    folder: Path
    environ: dict[str, str]

    def playhead(self, *words: str):
        done = playhead(*words, environ=self.environ, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done

    def stored_bytes(self) -> int:
        """What the store takes, without the search index and the folders of forks."""
        return sum(
            path.stat().st_size
            for path in (self.folder / "data").rglob("*")
            if path.is_file() and "forks" not in path.parts and "search" not in path.name
        )


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("storage")
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answer, repeat=True)
        environ = environment(folder, provider.url)
        for name in ("PLAYHEAD_ENDPOINT", "PLAYHEAD_QUIET"):
            environ.pop(name)
        (folder / "agent.py").write_text(AGENT)
        made = Stage(folder, environ)
        made.playhead("record", "agent.py")
        yield made


@pytest.mark.acceptance
def test_a_fork_costs_what_it_adds(stage: Stage):
    whole = stage.stored_bytes()
    # Hexadecimal digits pack to half; twelve answers, however often they are sent again.
    assert whole > STEPS * ANSWER_BYTES // 2
    stage.playhead("fork", f"agent-1:{STEPS}")
    late = stage.stored_bytes() - whole
    stage.playhead("fork", "agent-1:1", "--edit", "messages[0].content=another")
    early = stage.stored_bytes() - whole - late
    # One answer of its own and what any process costs, beside twelve of its own.
    assert late < whole / 4
    assert early > late * 3
    with stored(stage.folder, "agent-1", "agent-2") as [origin, fork]:
        assert [one.request for one in fork.exchanges] == [one.request for one in origin.exchanges]
        assert [one.response for one in fork.exchanges] == [one.response for one in origin.exchanges]
        own = sum(len(fact.body.inline or b"") for fact in fork_facts(stage, fork.tape.instance))
        assert own < 3 * ANSWER_BYTES


def fork_facts(stage: Stage, instance: bytes):
    from playhead_receiver.storage import open_store

    store = open_store(stage.folder / "data", read_only=True)
    try:
        return [
            fact
            for fact in store.tape(instance).facts()
            if fact.body is not None and fact.name.startswith("playhead.exchange")
        ]
    finally:
        store.close()


@pytest.mark.acceptance
def test_the_folder_of_a_fork_lives_as_long_as_it_does(stage: Stage):
    done = stage.playhead("fork", f"agent-1:{STEPS}")
    assert "its files are in" not in done.stderr
    forks = stage.folder / "data" / "forks"
    assert list(forks.iterdir()) == []
    recorded = stage.playhead("record", "agent.py", "--write")
    name = re.search(r"playhead: (agent-\d+) success", recorded.stderr)
    assert name is not None
    done = stage.playhead("fork", f"{name[1]}:3")
    found = re.search(r"its files are in (.*)$", done.stderr, re.M)
    made = re.search(r"playhead: (agent-\d+) success", done.stderr)
    assert found is not None and made is not None
    assert Path(found[1]) == forks / made[1]
    assert len((forks / made[1] / "log.txt").read_text().splitlines()) == STEPS
    # A fork of the fork begins with its files, and not with those of the first run.
    (forks / made[1] / "mine.txt").write_text("of the fork\n")
    done = stage.playhead("fork", f"{made[1]}:{STEPS}")
    again = re.search(r"its files are in (.*)$", done.stderr, re.M)
    assert again is not None
    assert (Path(again[1]) / "mine.txt").read_text() == "of the fork\n"
    stage.playhead("gc", "--success", "365d", "--failure", "365d", "--yes")
    assert len(list(forks.iterdir())) == 2
    done = stage.playhead("gc", "--success", "0s", "--failure", "0s", "--yes")
    assert "removed 2 folders of forks that are gone" in done.stderr
    assert list(forks.iterdir()) == []
