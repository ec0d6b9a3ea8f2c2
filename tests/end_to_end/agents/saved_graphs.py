"""Graphs of LangGraph that are interrupted and resumed, with their checkpoints in PostgreSQL.

The argument says how the saver asks: ``sync``, ``pool`` or ``async``. ``together``: two graphs at once.
"""

import asyncio
import operator
import os
import sys
from typing import Annotated, TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

URL = os.environ["DATABASE_URL"]


class State(TypedDict):
    said: Annotated[list, operator.add]


def first(state):
    return {"said": [f"first {len(state['said'])}"]}


def asks(state):
    return {"said": [interrupt("name?")]}


built = StateGraph(State)
built.add_node("first", first)
built.add_node("asks", asks)
built.add_edge(START, "first")
built.add_edge("first", "asks")
built.add_edge("asks", END)


def run(saver):
    saver.setup()
    graph = built.compile(checkpointer=saver)
    thread = {"configurable": {"thread_id": "one"}}
    print(graph.invoke({"said": ["hello"]}, thread)["said"])
    print(graph.invoke(Command(resume="Ada"), thread)["said"])
    print(len(list(graph.get_state_history(thread))))


async def run_async():
    async with AsyncPostgresSaver.from_conn_string(URL) as saver:
        await saver.setup()
        graph = built.compile(checkpointer=saver)

        async def one(name):
            thread = {"configurable": {"thread_id": name}}
            await graph.ainvoke({"said": ["hello"]}, thread)
            print((await graph.ainvoke(Command(resume=name), thread))["said"])

        if sys.argv[1] == "together":
            await asyncio.gather(one("Ada"), one("Grace"))
        else:
            await one("Ada")
            await one("Grace")


if sys.argv[1] == "sync":
    with PostgresSaver.from_conn_string(URL) as opened:
        run(opened)
elif sys.argv[1] == "pool":
    asked = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(URL, min_size=1, max_size=4, kwargs=asked) as pool:
        run(PostgresSaver(pool))
else:
    asyncio.run(run_async())
