"""A graph that may be killed at any time: started again, it goes on from its last checkpoint.

Arguments: the file of the checkpoints, the thread. It prints a line for each node that begins, and in
the end its final state. Its checkpoints are put before it goes on: LangGraph otherwise changes a joining
channel while it is put.
"""

from __future__ import annotations

import operator
import sys
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver

ROUNDS = 20


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    numbers: Annotated[list[int], operator.add]
    rounds: int


def ask(state: State) -> dict[str, Any]:
    print("ask", flush=True)
    number = len(state["messages"])
    return {
        "messages": [HumanMessage(f"question {number} " + "words " * (number % 40), id=f"h{number}")]
    }


def count(state: State) -> dict[str, Any]:
    print("count", flush=True)
    return {"numbers": [sum(state["numbers"]) % 1009 + len(state["messages"])]}


def reply(state: State) -> dict[str, Any]:
    print("reply", flush=True)
    number = len(state["messages"])
    said = f"{state['messages'][-1].content} and {sum(state['numbers'])}"
    return {"messages": [AIMessage(said, id=f"a{number}")], "rounds": state["rounds"] + 1}


def further(state: State) -> Any:
    return END if state["rounds"] >= ROUNDS else ["ask", "count"]


def graph(saver: PlayheadSaver) -> Any:
    """Two nodes side by side in each round, and one after both."""
    made: Any = StateGraph(State)
    for node in (ask, count, reply):
        made.add_node(node.__name__, node)
    made.add_edge(START, "ask")
    made.add_edge(START, "count")
    made.add_edge(["ask", "count"], "reply")
    made.add_conditional_edges(
        "reply", lambda state: END if state["rounds"] >= ROUNDS else ["ask", "count"]
    )
    return made.compile(checkpointer=saver)


def main(path: str, thread: str) -> None:
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 1_000}
    with SqliteCheckpoints(path) as store:
        compiled = graph(PlayheadSaver(store))
        began = compiled.get_state(config).values
        start = None if began else {"messages": [], "numbers": [1], "rounds": 0}
        compiled.invoke(start, config, durability="sync")
        found = compiled.get_state(config)
        assert not found.next
        messages = [(type(one).__name__, one.id, one.content) for one in found.values["messages"]]
        print("end", messages, found.values["numbers"], found.values["rounds"], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
