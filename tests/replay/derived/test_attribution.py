"""The time of a run is split so that all parts add up to it, however concurrent its calls are."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import Any

import openai
import pytest
from support.failing.agents import Agent, run_of
from support.failing.tool_faults import ORDER
from support.servers.scripted import ScriptedServer, json_reply, openai_chat
from support.tapes.handmade import ROOT, HandMade

import playhead
from playhead_replay import Run
from playhead_replay.derived.attribution import attribution_of
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import resend_count
from playhead_semconv import attributes as a

MODEL = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_REQUEST_MODEL: "gpt-4o"}
POST = {a.HTTP_REQUEST_METHOD: "POST"}


def by_brute_force(run: Run) -> dict[str, float]:
    """Look at the middle of each time in which nothing changes, at what has nothing inside."""
    steps = {step.span.span_id: step for step in run.steps}
    chains: dict[str, list[str]] = {}

    def walk(span: Span, above: list[str]) -> None:
        chains[span.span_id] = above
        for child in span.children:
            walk(child, [*above, span.span_id] if span.span_id in steps else above)

    for root in run.roots:
        walk(root, [])
    ends = sorted(
        {run.started_ns, run.ended_ns or 0}
        | {time for span in run.spans for time in (span.started_ns, span.ended_ns or 0)}
    )
    found: dict[str, float] = defaultdict(float)
    for begin, end in pairwise(ends):
        at = (begin + end) / 2
        pending = {
            id for id, step in steps.items() if step.span.started_ns < at < (step.span.ended_ns or 0)
        }
        around = {above for id in pending for above in chains[id]}
        running = pending - around
        for id in running:
            step = steps[id]
            again = [one.started_ns for one in step.attempts if resend_count(one.attributes)]
            first = min((one.started_ns for one in step.attempts), default=0)
            kind = "tool" if a.GEN_AI_TOOL_NAME in step.span.attributes else "model"
            if again and first < at < max(again):
                kind = "retry"
            found[kind] += (end - begin) / len(running)
        if not running:
            found["code"] += end - begin
    return found


def assert_adds_up(run: Run) -> None:
    got, want = attribution_of(run), by_brute_force(run)
    parts = {
        "model": got.model_ns,
        "tool": got.tool_ns,
        "retry": got.retry_ns,
        "waiting": got.waiting_ns,
        "code": got.code_ns,
    }
    slack = 0.01 * got.duration_ns
    assert abs(sum(parts.values()) - got.duration_ns) <= 10
    assert got.duration_ns == (run.ended_ns or 0) - run.started_ns
    assert all(abs(parts[kind] - want[kind]) <= slack for kind in parts), (parts, want)
    steps = sum(one.time_ns + one.retry_ns for one in got.steps)
    assert abs(steps + got.code_ns - got.duration_ns) <= slack
    numbers = [int(place) for place in got.critical_path]
    ends = [
        (run.steps[number - 1].span.started_ns, run.steps[number - 1].span.ended_ns)
        for number in numbers
    ]
    assert all((one[1] or 0) <= other[0] for one, other in pairwise(ends))


def made_run(chosen: random.Random) -> Run:
    """Models with retries and tools, at once and inside of each other."""
    made, open_spans = HandMade().start(), list[int]()
    for _ in range(chosen.randrange(5, 60)):
        made.wait(chosen.expovariate(2))
        if open_spans and chosen.random() < 0.45:
            made.finish(open_spans.pop(chosen.randrange(len(open_spans))))
            continue
        parent = chosen.choice([ROOT, *open_spans])
        if chosen.random() < 0.5:
            name = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "look_up"}
            open_spans.append(made.begin("execute_tool look_up", parent=parent, **name))
            continue
        call = made.begin("chat gpt-4o", parent=parent, kind=3, **MODEL)
        for attempt in range(chosen.choice([1, 1, 3])):
            again = {a.HTTP_REQUEST_RESEND_COUNT: attempt} if attempt else {}
            sent = made.begin("POST", parent=call, kind=3, **POST, **again)
            made.wait(chosen.random())
            made.finish(sent, error="503" if chosen.random() < 0.3 else "")
            made.wait(chosen.random() / 4)
        open_spans.append(call)
    for number in open_spans:
        made.wait(chosen.random())
        made.finish(number)
    made = made.wait(chosen.random()).exit()
    return Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "refund-1")


def test_the_parts_of_a_hundred_concurrent_runs_add_up():
    chosen = random.Random(8)
    for _ in range(100):
        assert_adds_up(made_run(chosen))


def test_parts_are_told_apart_with_what_a_failure_cost():
    made = HandMade().start()
    made.wait(1)
    call = made.begin("chat gpt-4o", kind=3, **MODEL)
    for attempt in range(2):
        again = {a.HTTP_REQUEST_RESEND_COUNT: attempt} if attempt else {}
        sent = made.begin("POST", parent=call, kind=3, **POST, **again)
        made.wait(2)
        made.finish(
            sent, error="" if attempt else "429", **{a.HTTP_RESPONSE_STATUS_CODE: 429 - 229 * attempt}
        )
        made.wait(0 if attempt else 1)
    made.finish(call, **{a.GEN_AI_USAGE_INPUT_TOKENS: 1000, a.GEN_AI_USAGE_OUTPUT_TOKENS: 100})
    made.wait(1)
    tool = made.begin(
        "execute_tool pay", **{a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "pay"}
    )
    made.wait(1)
    made.exchange("stdin", chunks=(b"yes\n",), status=200, kind="stdin")
    made.wait(1)
    made.finish(tool, error="builtins.TimeoutError: slow")
    made.wait(0.5).exit()
    found = attribution_of(Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "refund-1"))
    in_s = [found.model_ns, found.tool_ns, found.retry_ns, found.waiting_ns, found.code_ns]
    assert [round(one / 1e9, 2) for one in in_s] == [2.0, 2.0, 3.0, 0.2, 2.5]
    assert [(one.place, one.part, one.name) for one in found.steps] == [
        ("1", "model", "chat gpt-4o"),
        ("2", "tool", "pay"),
        ("", "waiting", "input"),
    ]
    assert found.critical_path == ["1", "2"]
    assert [(one.code, one.recovered, round(one.time_ns / 1e9, 1)) for one in found.failures] == [
        ("rate_limit", True, 5.0),
        ("timeout", False, 2.0),
    ]
    assert found.failures[0].cost_usd == found.steps[0].cost_usd == found.cost_usd
    assert (found.cost_usd or 0) > 0


def test_wrong_arguments_cost_what_their_answer_cost():
    def program(server: ScriptedServer) -> None:
        agent = Agent(server, schemas={"look_up": ORDER})
        agent.work([("look_up", {"order": "x"})], "I cannot.", look_up="refused")

    found = attribution_of(run_of(program))
    (failure,) = found.failures
    assert (failure.place, failure.code) == ("1.1", "invalid_output")
    assert failure.cost_usd == found.steps[0].cost_usd and failure.time_ns == found.steps[0].time_ns > 0


def concurrent(server: ScriptedServer, width: int) -> None:
    """An agent that asks several models at once, in marked tools and beside them, and tries again."""
    busy = json_reply({"error": {"message": "busy"}}, 429, {"retry-after-ms": "1"})
    said = json_reply(openai_chat.completion("fine"))
    server.on("/v1/chat/completions", busy, said, busy, said, repeat=True)

    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="k") as client:

            async def ask() -> None:
                hello: Any = [{"role": "user", "content": "hello"}]
                await client.chat.completions.create(model="gpt-4o", messages=hello)

            @playhead.tool
            async def look_up(depth: int) -> None:
                await asyncio.sleep(0)  # others begin first
                if depth:
                    await asyncio.gather(ask(), look_up(depth - 1))

            await asyncio.gather(
                *(ask() for _ in range(width)), *(look_up(number % 3) for number in range(width))
            )

    asyncio.run(work())


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_the_parts_of_a_hundred_concurrent_agents_over_an_sdk_add_up(capsys: pytest.CaptureFixture[str]):
    chosen = random.Random(9)
    for _ in range(100):
        width = chosen.randrange(1, 12)
        assert_adds_up(run_of(partial(concurrent, width=width)))
    with capsys.disabled():
        print("\n100 concurrent runs add up")
