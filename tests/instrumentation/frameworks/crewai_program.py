"""What programs do with CrewAI: each part prints what it did."""

import asyncio

from crewai import LLM, Agent, Crew, Task
from crewai.flow import Flow, listen, start
from crewai.tools import tool

import playhead

MODEL = LLM("openai/gpt-4o", stream=True)


@tool("look_up")
def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


@tool("fail")
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@tool("charge")
def charge(order: int) -> str:
    """Charge an order."""
    return charged(order)


@playhead.tool(name="charge")
def charged(order: int) -> str:
    return f"charged {order}"


def agent(role: str, *tools: object, **more: object) -> Agent:
    return Agent(role=role, goal="refund", backstory="none", llm=MODEL, tools=list(tools), **more)


def crew() -> object:
    """Two agents: the first has tools that fail or not, and delegates to the second."""
    lead = agent("lead", look_up, fail, allow_delegation=True)
    billing = agent("billing", charge)
    tasks = [
        Task(name="triage", description="refund order 81", expected_output="words", agent=lead),
        Task(name="notify", description="write a mail", expected_output="words", agent=billing),
    ]
    return Crew(name="support", agents=[lead, billing], tasks=tasks).kickoff().raw


class Refund(Flow):
    """A flow with an agent in it."""

    _skip_auto_memory = True  # the database of CrewAI's memory is not installed with these tests

    @start()
    async def ask(self) -> str:
        return (await agent("alone", look_up).kickoff_async("refund order 82")).raw

    @listen(ask)
    def confirm(self, said: str) -> str:
        return f"{said}, confirmed"


async def flow() -> object:
    return await Refund().kickoff_async()


def failing() -> object:
    """A task whose guardrail refuses the answer."""

    def refuse(output: object) -> tuple[bool, str]:
        return False, "not polite"

    one = agent("refused")
    task = Task(
        description="refuse", expected_output="words", agent=one, guardrail=refuse,
        guardrail_max_retries=0,
    )  # fmt: skip
    try:
        Crew(name="strict", agents=[one], tasks=[task]).kickoff()
    except Exception as error:
        return str(error)
    return None


print("crew", crew())
print("flow", asyncio.run(flow()))
print("failing", failing())
