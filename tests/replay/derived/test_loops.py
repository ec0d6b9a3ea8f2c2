"""Loops of agents that call real SDKs: injected ones are found, polls, pages and retries are not."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from support.servers.scripted import (
    Reply,
    Request,
    ScriptedServer,
    anthropic_messages,
    json_reply,
    openai_chat,
)
from support.tapes.handmade import HandMade
from support.tapes.recorded_calls import global_provider, recorded_calls

from playhead_core.control.loops import LoopFinder
from playhead_replay import Run
from playhead_replay.derived.loops import RunLoop, loops_of
from playhead_semconv import attributes as a

Call = tuple[str, Any]
"""Name and arguments of a tool call."""
Round = tuple[Call, str]
"""A call and its result."""

WORDS = "order refund policy invoice delivery address customer warehouse stock price".split()


class Agent:
    """An agent with an SDK, and its model, which calls the tools that the plan names."""

    def __init__(self, sdk: str, plan: Sequence[Round]) -> None:
        self.sdk, self.plan = sdk, plan
        self.finder = LoopFinder()
        self.loops_at: list[int] = []
        """Requests at which a rule of control would find a loop."""
        self._ids = itertools.count()

    def model(self, request: Request) -> Reply:
        """The answer to a request: the next call of the plan, with other words each time."""
        body = request.json
        results = str(body).count("'tool_result'") + sum(
            one["role"] == "tool" for one in body["messages"]
        )
        self.finder.add("http", f"POST {request.path}", request.body)
        if self.finder.is_loop:
            self.loops_at.append(results)
        id, words = f"c{next(self._ids)}", f"Attempt {results}."
        if results == len(self.plan):
            call = None
        else:
            (name, arguments), _ = self.plan[results]
            call = name, arguments
        if self.sdk == "openai":
            if call is None:
                return json_reply(openai_chat.completion("done"))
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            calls = [{"id": id, "type": "function", "function": function}]
            return json_reply(openai_chat.completion(words, tool_calls=calls))
        blocks = [{"type": "text", "text": words}]
        if call is not None:
            blocks.append({"type": "tool_use", "id": id, "name": call[0], "input": call[1]})
        return json_reply(anthropic_messages.message(blocks))

    def work(self, url: str) -> None:
        """Run until the model calls no tool."""
        messages: list[Any] = [{"role": "user", "content": "What is the policy?"}]
        results = iter(result for _, result in self.plan)
        if self.sdk == "openai":
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
            while True:
                answer = client.chat.completions.create(model="m", messages=messages)
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    said = {"role": "tool", "tool_call_id": call.id, "content": next(results)}
                    messages.append(said)
        other = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        while True:
            reply = other.messages.create(model="m", max_tokens=9, messages=messages)
            messages.append(
                {"role": "assistant", "content": [one.model_dump() for one in reply.content]}
            )
            used = [one for one in reply.content if one.type == "tool_use"]
            if not used:
                return
            said = [
                {"type": "tool_result", "tool_use_id": one.id, "content": next(results)} for one in used
            ]
            messages.append({"role": "user", "content": said})


def otlp(spans: Sequence[ReadableSpan]) -> list[bytes]:
    return [encode_spans([span]).resource_spans[0].SerializeToString() for span in spans]


@contextmanager
def recorded(agent: Agent, server: ScriptedServer) -> Iterator[Run]:
    with recorded_calls(quiet=True) as recording:
        with global_provider().get_tracer("agent").start_as_current_span("agent"):
            agent.work(server.url)
        spans = recording.spans()
    yield Run.of_tape(recording.sink.tape, otlp(spans))


def found_in(agent: Agent) -> list[RunLoop]:
    with ScriptedServer() as server:
        server.on(lambda _: True, agent.model, repeat=True)
        with recorded(agent, server) as run:
            return [one for one in loops_of(run) if one.same_result]


def prelude(chosen: random.Random) -> list[Round]:
    return [
        ((f"look_{number}", {"at": chosen.choice(WORDS)}), f"{chosen.choice(WORDS)} {number}")
        for number in range(chosen.randrange(4))
    ]


def looping(chosen: random.Random, period: int, times: int) -> list[Round]:
    results = ["[]", "no results", '{"docs": []}', chosen.choice(WORDS), '{"rows": [{"id": 7}]}']
    names = [f"tool_{number}" for number in range(period)]
    chosen.shuffle(names)
    rounds = [((name, {"q": chosen.choice(WORDS)}), chosen.choice(results)) for name in names]
    return [*prelude(chosen), *rounds * times]


def polling(chosen: random.Random) -> list[Round]:
    count = chosen.randrange(4, 12)
    call = "status", {"job": chosen.randrange(100)}
    if chosen.random() < 0.5:
        states = [f'{{"done": {number}, "of": {count}}}' for number in range(count)]
    else:
        states = [chosen.choice(['{"state": "pending"}', "still running", "queued"])] * count
    return [*prelude(chosen), *((call, state) for state in states), (call, '{"state": "ready"}')]


def paging(chosen: random.Random) -> list[Round]:
    pages = chosen.randrange(4, 12)
    empty = chosen.random() < 0.3
    return [
        *prelude(chosen),
        *(
            (("list", {"page": page, "size": 50}), "[]" if empty else f'["{chosen.choice(WORDS)}"]')
            for page in range(pages)
        ),
    ]


def retrying(chosen: random.Random) -> list[Round]:
    error = chosen.choice(
        ['{"error": "timeout"}', "Error: connection refused", "503 Service Unavailable", "rate limit"]
    )
    call = "fetch", {"id": chosen.randrange(100)}
    return [*prelude(chosen), *[(call, error)] * chosen.randrange(1, 5), (call, "fetched")]


HARMLESS: list[Callable[[random.Random], list[Round]]] = [polling, paging, retrying]


@pytest.mark.parametrize(("sdk", "period"), [("openai", 1), ("anthropic", 3)])
def test_a_loop_is_found_by_its_third_round_with_its_steps(sdk: str, period: int):
    agent = Agent(sdk, looping(random.Random(1), period, 4))
    before = len(agent.plan) - 4 * period
    (loop,) = found_in(agent)
    assert (loop.period, loop.times, len(loop.names)) == (period, 4, period)
    assert (loop.first, loop.last) == (f"{before + 1}.1", f"{len(agent.plan)}.1")
    assert agent.loops_at[0] == before + 3 * period


@pytest.mark.parametrize("side_by_side", [True, False])
def test_agents_that_do_the_same_side_by_side_are_in_no_loop(side_by_side: bool):
    made = HandMade().start()

    def begun() -> int:
        return made.begin("invoke_agent", **{a.GEN_AI_OPERATION_NAME: "invoke_agent"})

    early = [begun() for _ in range(3)] if side_by_side else []
    for place in range(3):
        agent = early[place] if early else begun()
        called = {a.GEN_AI_OPERATION_NAME: "execute_tool", a.GEN_AI_TOOL_NAME: "search"}
        tool = made.begin("execute_tool search", parent=agent, **called)
        made.wait(0.2)
        made.finish(tool, **{a.GEN_AI_TOOL_CALL_RESULT: "[]"})
        made.wait(0.1)
        if not early:
            made.finish(agent)
    for agent in early:
        made.finish(agent)
    made.exit()
    run = Run.of_tapes([made.tape()], [span.otlp for span in made.spans], "refund-1")
    loops = [(one.names, one.times) for one in loops_of(run)]
    assert loops == ([] if side_by_side else [(["search"], 3)])


@pytest.mark.parametrize("harmless", HARMLESS, ids=lambda one: one.__name__)
def test_what_polls_pages_or_retries_is_in_no_loop(harmless: Callable[[random.Random], list[Round]]):
    agent = Agent("openai", harmless(random.Random(2)))
    assert (found_in(agent), agent.loops_at) == ([], [])


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_injected_loops_are_found_and_harmless_repeats_are_not(capsys: pytest.CaptureFixture[str]):
    chosen, found, by_rule, late = random.Random(40), 0, 0, 0
    for number in range(60):
        period = number % 6 + 1
        agent = Agent(("openai", "anthropic")[number % 2], looping(chosen, period, 4))
        loops = found_in(agent)
        before = len(agent.plan) - 4 * period
        found += any(loop.period == period or loop.times >= 4 for loop in loops)
        by_rule += bool(agent.loops_at)
        late += bool(agent.loops_at) and agent.loops_at[0] > before + 3 * period
    wrong = wrong_by_rule = 0
    for number in range(300):
        agent = Agent(("openai", "anthropic")[number % 2], HARMLESS[number % 3](chosen))
        wrong += bool(found_in(agent))
        wrong_by_rule += bool(agent.loops_at)
    with capsys.disabled():
        print(
            f"\nloops found: {found} of 60 by the receiver, {by_rule} of 60 by the rule,"
            f" {late} after the third round; false alarms: {wrong} and {wrong_by_rule} of 300"
        )
    assert min(found, by_rule) >= 57 and max(wrong, wrong_by_rule) <= 3 and late == 0
