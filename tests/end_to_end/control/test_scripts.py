"""Scripts that use the OpenAI SDK and know nothing of playhead: paused, edited, let go, replayed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.outside.controlling import Stage, on_stage, said_back
from support.servers.scripted import Gate, openai_chat, sse, sse_reply

SYNC = f"""
import sys
{ASKING}
print("ready", flush=True)
sys.stdin.readline()
for number in range(3):
    print(asked(f"question {{number}}"), flush=True)
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with on_stage(tmp_path) as stage:
        yield stage


LEVELS = ["exchanges", pytest.param("causal", marks=pytest.mark.acceptance), "strict"]


@pytest.mark.parametrize("level", LEVELS)
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


ASYNC = """
    import asyncio
    import os
    import sys
    import httpx

    PLACE = os.environ["OPENAI_BASE_URL"] + "/chat/completions"

    async def ask(client, number):
        messages = [{"role": "user", "content": f"question {number}"}]
        answer = await client.post(PLACE, json={"model": "gpt-5.5", "messages": messages})
        return answer.json()["choices"][0]["message"]["content"]

    async def main():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async with httpx.AsyncClient(timeout=None) as client:
            asking = [asyncio.create_task(ask(client, number)) for number in range(10)]
            await asyncio.to_thread(sys.stdin.readline)
            print("the loop goes on", flush=True)
            for answer in await asyncio.gather(*asking):
                print(answer, flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize("level", LEVELS)
def test_ten_tasks_wait_and_their_loop_goes_on(stage: Stage, level: str):
    stage.provider.script([said_back], repeat=True)
    agent = stage.start(stage.script(ASYNC), PLAYHEAD_LEVEL=level)
    assert agent.stdout is not None and agent.stdin is not None
    assert agent.stdout.readline() == "ready\n"
    stage.operator.order("agent-1", "pause", lease_s=60)
    agent.stdin.write("go\n")
    agent.stdin.flush()
    waiting = stage.operator.halted("agent-1", 10)
    agent.stdin.write("go\n")
    agent.stdin.flush()
    assert agent.stdout.readline() == "the loop goes on\n"
    assert stage.provider.requests == []
    by_text = {
        number: one for one in waiting for number in range(10) if f"question {number}" in one["body"]
    }
    refused = stage.operator.post("agent-1", "edit", edits=[{"path": "model", "value": "other"}])
    assert refused.status_code == 422
    assert "10 requests are pending" in refused.json()["detail"]
    change = [{"path": "messages[0].content", "value": "edited"}]
    stage.operator.order("agent-1", "edit", halt=by_text[4]["id"], edits=change)
    stage.operator.order("agent-1", "step", halt=by_text[7]["id"])
    (first,) = stage.provider.wait_requests(1)
    assert first.json["messages"][0]["content"] == "question 7"
    stage.operator.order("agent-1", "continue")
    said = stage.ended(agent).splitlines()
    assert said == [
        f"You said {'edited' if number == 4 else f'question {number}'}" for number in range(10)
    ]
    status, report = stage.home.report("agent-1", input="go\ngo\n")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])


STREAMS = """
    from openai import OpenAI

    client = OpenAI(max_retries=0)
    stream = client.chat.completions.create(
        model="gpt-5.5", messages=[{"role": "user", "content": "hello"}], stream=True
    )
    for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            print(chunk.choices[0].delta.content, flush=True)
    print("end", flush=True)
"""

STREAMS_ASYNC = """
    import asyncio
    from openai import AsyncOpenAI

    async def main():
        async with AsyncOpenAI(max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="gpt-5.5", messages=[{"role": "user", "content": "hello"}], stream=True
            )
            async for chunk in stream:
                if chunk.choices and chunk.choices[0].delta.content:
                    print(chunk.choices[0].delta.content, flush=True)
        print("end", flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("script", "level"),
    [
        long(STREAMS, "exchanges", id="sync exchanges"),
        pytest.param(STREAMS_ASYNC, "strict", id="async strict"),
        *(
            pytest.param(script, level, id=f"{name} {level}", marks=pytest.mark.acceptance)
            for name, script, level in (
                ("sync", STREAMS, "causal"),
                ("sync", STREAMS, "strict"),
                ("async", STREAMS_ASYNC, "exchanges"),
                ("async", STREAMS_ASYNC, "causal"),
            )
        ),
    ],
)
def test_a_stream_stops_between_two_chunks(stage: Stage, script: str, level: str):
    chunks = list(sse.chat(openai_chat.chunks(openai_chat.completion("one two three"))))
    here, later = Gate(), Gate()
    stage.provider.script([sse_reply([*chunks[:2], here, *chunks[2:4], later, *chunks[4:]])])
    agent = stage.start(stage.script(script), PLAYHEAD_LEVEL=level)
    assert agent.stdout is not None
    here.wait_reached()
    begun = agent.stdout.readline()
    stage.operator.order("agent-1", "pause", lease_s=60)
    here.open()
    later.wait_reached()
    (waits,) = stage.operator.halted("agent-1")
    assert (waits["reason"], waits["kind"]) == ("arrives", "http")
    later.open()
    stage.operator.order("agent-1", "continue")
    said = begun + stage.ended(agent)
    assert "".join(said.split()) == "onetwothreeend"
    status, report = stage.home.report("agent-1")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
