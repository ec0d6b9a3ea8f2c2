"""What programs do with AutoGen: each part prints what it did."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

import playhead


async def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


async def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@playhead.tool
def charged(order: int) -> str:
    """Charge an order."""
    return f"charged {order}"


def agent(name: str, tools: Any = (), **more: Any) -> AssistantAgent:
    client = OpenAIChatCompletionClient(model="gpt-4o", parallel_tool_calls=False)
    return AssistantAgent(name, client, tools=list(tools), system_message=name, description=name, **more)


async def swarm() -> object:
    """An agent hands over to another one, which calls a tool."""
    team = Swarm(
        [agent("triage", handoffs=["billing"]), agent("billing", [look_up])],
        termination_condition=TextMentionTermination("I am billing"),
    )
    return (await team.run(task="refund")).messages[-1].to_text()


async def errors() -> object:
    """A tool fails; another one is marked for the recording, too."""
    tools = agent("failing", [fail, charged], reflect_on_tool_use=True)
    return (await tools.run(task="try")).messages[-1].to_text()


async def nested() -> object:
    """An agent is a tool of another one."""
    boss = agent("boss", [AgentTool(agent("helper"))], reflect_on_tool_use=True)
    return (await boss.run(task="delegate")).messages[-1].to_text()


async def streamed() -> object:
    """The program calls a model between the parts of a team's stream, and after it."""
    client = AsyncOpenAI()

    async def ask(text: str) -> str:
        said: list[Any] = [{"role": "user", "content": text}]
        done = await client.chat.completions.create(model="gpt-4o", messages=said)
        return str(done.choices[0].message.content)

    members = [agent("first", model_client_stream=True), agent("second", model_client_stream=True)]
    team = RoundRobinGroupChat(members, termination_condition=MaxMessageTermination(3))
    said: list[str] = []
    async for message in team.run_stream(task="stream"):
        if type(message).__name__ == "TextMessage":
            said.append(await ask(f"between {message.source}"))
    return [*said, await ask("after")]


async def concurrent() -> object:
    """Two agents at once."""
    runs = await asyncio.gather(*(agent(name).run(task=name) for name in ("one", "two")))
    return [run.messages[-1].to_text() for run in runs]


async def main() -> None:
    for part in (swarm, errors, nested, streamed, concurrent):
        print(part.__name__, await part())


asyncio.run(main())
