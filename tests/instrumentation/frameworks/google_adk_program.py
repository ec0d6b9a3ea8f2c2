"""What programs do with Google's Agent Development Kit: each part prints what it did."""

from __future__ import annotations

import asyncio
import os
from typing import Any

os.environ.update(GOOGLE_GEMINI_BASE_URL=os.environ["OPENAI_BASE_URL"], GOOGLE_API_KEY="k")

from google.adk.agents import LlmAgent, ParallelAgent, RunConfig, SequentialAgent
from google.adk.agents.run_config import StreamingMode
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import playhead


async def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@playhead.tool
def charged(order: int) -> str:
    """Charge an order."""
    return f"charged {order}"


def agent(name: str, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model="gemini-2.5-flash", instruction=name, description=name, **more)


billing = agent("billing", tools=[look_up])
PARTS: dict[str, Any] = {
    "triage": agent("triage", sub_agents=[billing]),
    "marked": agent("marked", tools=[charged]),
    "boss": agent("boss", tools=[AgentTool(agent("helper"))]),
    "sequence": SequentialAgent(name="sequence", sub_agents=[agent("first"), agent("second")]),
    "parallel": ParallelAgent(name="parallel", sub_agents=[agent("left"), agent("right")]),
    "failing": agent("failing", tools=[fail]),
}


async def run(name: str) -> list[str]:
    """Stream an agent in a new session."""
    runner = InMemoryRunner(PARTS[name], app_name="shop")
    session = f"conversation-{name}"
    await runner.session_service.create_session(app_name="shop", user_id="u", session_id=session)
    said: list[str] = []
    asked = types.Content(role="user", parts=[types.Part(text=name)])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    async for event in runner.run_async(
        user_id="u", session_id=session, new_message=asked, run_config=config
    ):
        texts = [part.text for part in (event.content.parts if event.content else None) or ()]
        said += [text for text in texts if text and not event.partial]
    return sorted(said)


async def main() -> None:
    for name in PARTS:
        try:
            print(name, await run(name))
        except ValueError as error:
            print(name, error)


asyncio.run(main())
