"""A LangGraph agent that calls a tool several times, then answers; its state is kept in memory."""

from typing import Any

import openai
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
MESSAGES = 18
"""The question, eight tool calls with their results, the answer."""

_client = openai.OpenAI()


def model(state: MessagesState) -> dict[str, Any]:
    """Ask the model with the whole history."""
    history = [_sent(message) for message in state["messages"]]
    got = _client.chat.completions.create(model="gpt-4o", messages=history, tools=[TOOL])  # type: ignore[call-overload]
    said = got.choices[0].message.to_dict()
    return {"messages": [{**said, "content": said.get("content") or ""}]}


def search(state: MessagesState) -> dict[str, Any]:
    """Do what the model called for."""
    [call] = state["messages"][-1].tool_calls  # type: ignore[union-attr]
    found = f"nothing about {call['args']['query']}"
    return {"messages": [{"role": "tool", "tool_call_id": call["id"], "content": found}]}


def wanted(state: MessagesState) -> str:
    """Where the graph goes after the model."""
    return "search" if state["messages"][-1].tool_calls else END  # type: ignore[union-attr]


def _sent(message: Any) -> dict[str, Any]:
    said = {"role": ROLES[message.type], "content": message.content}
    if message.type == "ai" and message.tool_calls:
        said["tool_calls"] = [
            {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": "{}"}}
            for one in message.tool_calls
        ]
    if message.type == "tool":
        said["tool_call_id"] = message.tool_call_id
    return said


_built = StateGraph(MessagesState)
_built.add_node("model", model)
_built.add_node("search", search)
_built.add_edge(START, "model")
_built.add_conditional_edges("model", wanted)
_built.add_edge("search", "model")
_agent = _built.compile(checkpointer=InMemorySaver())


def work() -> None:
    """Run the agent once."""
    asked = {"messages": [{"role": "user", "content": "Where is order 83?"}]}
    done = _agent.invoke(asked, {"recursion_limit": 50, "configurable": {"thread_id": "1"}})  # type: ignore[arg-type]
    assert len(done["messages"]) == MESSAGES, done
