"""What programs do with smolagents: each part prints what it did."""

from __future__ import annotations

import os
from typing import ClassVar

from smolagents import CodeAgent, OpenAIServerModel, Tool, ToolCallingAgent, tool

import playhead

MODEL = OpenAIServerModel("gpt-4o", api_base=os.environ["OPENAI_BASE_URL"], api_key="k")
QUIET = {"verbosity_level": 0, "max_steps": 4}


@tool
def look_up(order: int) -> str:
    """Look up an order.

    Args:
        order: Number of the order.
    """
    return f"order {order}"


@tool
def fail(reason: str) -> str:
    """Fail.

    Args:
        reason: The reason.
    """
    raise ValueError(reason)


class AskExpert(Tool):
    name = "ask_expert"
    description = "Ask another model."
    inputs: ClassVar = {"question": {"type": "string", "description": "The question."}}
    output_type = "string"

    def forward(self, question: str) -> str:
        return MODEL([{"role": "user", "content": question}]).content or ""


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


class Charge(Tool):
    name = "charged"
    description = "Charge an order."
    inputs: ClassVar = {"order": {"type": "integer", "description": "The order."}}
    output_type = "string"

    def forward(self, order: int) -> str:
        return charged(order)


def agent(name: str, *tools: Tool, **more: object) -> ToolCallingAgent:
    return ToolCallingAgent(
        list(tools),
        MODEL,
        name=name,
        description=name,
        instructions=name,
        max_tool_threads=1,
        **QUIET,
        **more,
    )


def two_tools() -> object:
    """Two tools in a thread, of which one calls a model."""
    return agent("billing", look_up, AskExpert()).run("billing: refund")


def errors() -> object:
    """A tool fails; another one is marked for the recording, too."""
    return agent("failing", fail, Charge()).run("failing: try")


def team() -> object:
    """An agent is a tool of another one."""
    return agent("boss", managed_agents=[agent("helper")]).run("boss: delegate")


def code() -> object:
    """An agent writes code that calls a tool."""
    return CodeAgent([look_up], MODEL, name="coder", **QUIET).run("coder: refund")


def stream() -> object:
    """The program calls a model between the steps of an agent, and leaves another one."""
    said: list[str] = []
    for step in agent("streamed", look_up).run("streamed: refund", stream=True):
        if type(step).__name__ == "ActionStep":
            said.append(MODEL([{"role": "user", "content": "between"}]).content or "")
    left = agent("left", look_up).run("left: refund", stream=True)
    next(left)
    try:
        left.close()
    except RuntimeError as error:  # it continued where it should have ended
        said.append(str(error))
    return [*said, MODEL([{"role": "user", "content": "after"}]).content]


def direct() -> object:
    """The program calls a tool itself, with an argument by position."""
    return look_up(80)


for part in (two_tools, errors, team, code, stream, direct):
    print(part.__name__, part())
