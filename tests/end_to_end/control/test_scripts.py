"""Scripts that use the OpenAI SDK and know nothing of playhead: paused, edited, let go, replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.controlling import Stage, on_stage, said_back

SYNC = """
    import sys
    from openai import OpenAI

    client = OpenAI(max_retries=0)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(3):
        answer = client.chat.completions.create(
            model="gpt-5.5", messages=[{"role": "user", "content": f"question {number}"}]
        )
        print(answer.choices[0].message.content, flush=True)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        yield stage


@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
def test_a_request_is_edited_while_it_waits_and_the_replay_repeats_it(stage: Stage, level: str):
    stage.provider.script([said_back], repeat=True)
    agent = stage.start(stage.script(SYNC), PLAYHEAD_LEVEL=level)
    assert agent.stdout is not None and agent.stdin is not None
    assert agent.stdout.readline() == "ready\n"
    stage.operator.order("agent-1", "pause", lease_s=60)
    agent.stdin.write("go\n")
    agent.stdin.flush()
    (waits,) = stage.operator.halted("agent-1")
    assert "question 0" in waits["body"]
    assert stage.provider.requests == []
    stage.operator.order("agent-1", "edit", edits=[{"path": "messages[-1].content", "value": "edited"}])
    assert "edited" in stage.operator.halted("agent-1")[0]["body"]
    stage.operator.order("agent-1", "step")
    (waits,) = stage.operator.halted("agent-1")
    stage.operator.order("agent-1", "continue")
    said = stage.ended(agent)
    assert said.splitlines() == ["You said edited", "You said question 1", "You said question 2"]
    asked = [request.json["messages"][-1]["content"] for request in stage.provider.requests]
    assert asked == ["edited", "question 1", "question 2"]
    status, report = stage.home.report("agent-1", input="go\n")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
    assert report["edited"] == ["request of step 1"]
