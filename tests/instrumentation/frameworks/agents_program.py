"""What programs do with the OpenAI Agents SDK: each part prints what it did."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    custom_span,
    function_tool,
    input_guardrail,
    set_trace_processors,
    trace,
)
from openai import AsyncOpenAI

import playhead

set_trace_processors([])  # the SDK's own would post to its vendor


@function_tool
async def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


@function_tool(name_override="charged")
def charge(order: int) -> str:
    """Charge an order."""
    return charged(order)


@function_tool(failure_error_function=lambda _, error: f"sorry: {error}")
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@input_guardrail(run_in_parallel=False)
async def polite(_: Any, agent: Any, said: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="damn" in str(said))


def agent(name: str, **more: Any) -> Agent[Any]:
    return Agent(name=name, instructions=name, model="gpt-4o", **more)


billing = agent("billing", tools=[look_up])
triage = agent("triage", handoffs=[billing])
failing = agent("failing", tools=[fail, charge])
helper = agent("helper")
boss = agent("boss", tools=[helper.as_tool("ask_helper", "Ask the helper.")])
guarded = agent("guarded", input_guardrails=[polite])


async def handoff() -> object:
    """An agent hands over to another one, which calls two tools at once."""
    config = RunConfig(workflow_name="refund", group_id="conversation-7")
    return (await Runner.run(triage, "refund", run_config=config)).final_output


async def errors() -> object:
    """A tool fails; another one is marked for the recording, too."""
    return (await Runner.run(failing, "try", run_config=RunConfig(workflow_name="failing"))).final_output


async def nested() -> object:
    """An agent is a tool of another one."""
    return (
        await Runner.run(boss, "delegate", run_config=RunConfig(workflow_name="nested"))
    ).final_output


async def one_trace() -> object:
    """Two concurrent runs in one trace of the program, which has another span."""
    with trace("both", group_id="conversation-8"):
        with custom_span("prepare"):
            pass
        runs = await asyncio.gather(*(Runner.run(helper, text) for text in ("one", "two")))
    return [one.final_output for one in runs]


async def streamed() -> object:
    """The program calls a model between the parts of a stream, and after it."""
    client = AsyncOpenAI()
    result = Runner.run_streamed(billing, "stream", run_config=RunConfig(workflow_name="streamed"))
    said: list[str] = []
    async for event in result.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_output":
            between = await client.responses.create(model="gpt-4o", instructions="between", input="x")
            said.append(between.output_text)
    after = await client.responses.create(model="gpt-4o", instructions="after", input="x")
    return [*said, result.final_output, after.output_text]


async def guardrails() -> object:
    """A guardrail lets the first question pass, and stops the second."""
    said: list[object] = [
        (await Runner.run(guarded, "please", run_config=RunConfig(workflow_name="passed"))).final_output
    ]
    try:
        await Runner.run(guarded, "damn", run_config=RunConfig(workflow_name="stopped"))
    except InputGuardrailTripwireTriggered:
        said.append("stopped")
    return said


async def untraced() -> object:
    """The program switches the SDK's tracing off."""
    config = RunConfig(tracing_disabled=True)
    return (await Runner.run(helper, "quietly", run_config=config)).final_output


async def main() -> None:
    for part in (handoff, errors, nested, one_trace, streamed, guardrails, untraced):
        print(part.__name__, await part())


asyncio.run(main())
