"""What programs do with LangChain and LangGraph: each part prints what it did."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

import playhead

MODEL = ChatOpenAI(model="gpt-4o", max_retries=0)


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def asked(text: str) -> str:
    return str(MODEL.invoke(text).content)


async def aasked(text: str) -> str:
    return str((await MODEL.ainvoke(text)).content)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def ask_expert(question: str) -> str:
    """Ask another model."""
    return asked(question)


@tool
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@tool
def refuse(reason: str) -> str:
    """Refuse, which the model is told."""
    raise ToolException(reason)


refuse.handle_tool_error = True


@tool
@playhead.tool
def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


def graph_of(name: str, nodes: dict[str, Any], edges: list[tuple[str, str]], **options: Any) -> Any:
    made: Any = StateGraph(State)
    for node, function in nodes.items():
        made.add_node(node, function)
    for start, end in edges:
        made.add_edge(start, end)
    return made.compile(name=name, **options)


def sync_graph() -> object:
    """A graph with a model call in a node, in a tool, and in a node of a graph within it."""
    inner = graph_of("inner", {"deep": lambda _: {"said": [asked("deep")]}}, [(START, "deep")])
    made = graph_of(
        "outer",
        {
            "plan": lambda _: {"said": [asked("plan")]},
            "work": lambda _: {"said": [ask_expert.invoke({"question": "work"})]},
            "inside": inner,
        },
        [(START, "plan"), ("plan", "work"), ("work", "inside"), ("inside", END)],
        checkpointer=MemorySaver(),
    )
    return made.invoke({"said": []}, {"configurable": {"thread_id": "conversation-7"}})["said"]


async def async_graph() -> object:
    """Two nodes at once, in tasks, and one after them."""

    async def left(_: State) -> State:
        return {"said": [await aasked("left")]}

    async def right(_: State) -> State:
        return {"said": [await aasked("right")]}

    async def join(_: State) -> State:
        return {"said": [await aasked("join")]}

    made = graph_of(
        "parallel",
        {"left": left, "right": right, "join": join},
        [(START, "left"), (START, "right"), ("left", "join"), ("right", "join")],
    )
    return (await made.ainvoke({"said": []}))["said"]


def threads() -> object:
    """Two nodes at once, in threads; and a batch of a chain."""
    made = graph_of(
        "branches",
        {"one": lambda _: {"said": [asked("one")]}, "two": lambda _: {"said": [asked("two")]}},
        [(START, "one"), (START, "two")],
    )
    chain: Any = ChatPromptTemplate.from_template("{x}") | MODEL
    said = made.invoke({"said": []})["said"]
    return [*said, *(one.content for one in chain.with_config(run_name="batch").batch([{"x": 1}]))]


def stream() -> object:
    """The program calls a model between the parts of a stream, and leaves another one."""
    made = graph_of(
        "streamed",
        {"first": lambda _: {"said": [asked("first")]}, "second": lambda _: {"said": ["second"]}},
        [(START, "first"), ("first", "second")],
    )
    said = [asked("between") for _ in made.stream({"said": []})]
    left = made.with_config(run_name="left").stream({"said": []})
    next(left)
    left.close()
    return [*said, asked("after")]


async def async_stream() -> object:
    """The same with tasks."""
    made = graph_of("astreamed", {"first": lambda _: {"said": [asked("first")]}}, [(START, "first")])
    said = [await aasked("between") async for _ in made.astream({"said": []})]
    return [*said, await aasked("after")]


def tools() -> object:
    """Tools that return, fail, and are marked for the recording, too."""
    said = [look_up.invoke({"order": 81})]
    try:
        fail.invoke({"reason": "no stock"})
    except ValueError as error:
        said.append(str(error))
    call: Any = {"type": "tool_call", "name": "refuse", "args": {"reason": "closed"}, "id": "call_9"}
    said.append(refuse.invoke(call).content)
    node = ToolNode([fail], handle_tool_errors=True)
    calls: Any = [{"name": "fail", "args": {"reason": "gone"}, "id": "call_10"}]
    handle = {"tools": lambda _: {"said": node.invoke([AIMessage("", tool_calls=calls)])}}
    graph_of("handled", handle, [(START, "tools")]).invoke({"said": []})
    return said


def interrupted() -> object:
    """A graph that is paused by a node, and goes on."""
    made = graph_of(
        "refund",
        {"approve": lambda _: {"said": [interrupt("Refund 20 EUR?")]}},
        [(START, "approve")],
        checkpointer=MemorySaver(),
    )
    thread = {"configurable": {"thread_id": "refund-7"}}
    made.invoke({"said": []}, thread)
    return made.with_config(run_name="resumed").invoke(Command(resume="yes"), thread)["said"]


def failing() -> object:
    """A node fails, and the graph with it."""

    def decline(_: State) -> State:
        raise ValueError("card declined")

    try:
        graph_of("charge", {"decline": decline}, [(START, "decline")]).invoke({"said": []})
    except ValueError as error:
        return str(error)
    return None


class Faq(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(asked(query), id="faq-7", metadata={"page": 3})]

    async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(await aasked(query), id="faq-8")]


def retrieval() -> object:
    """A retriever that calls a model."""
    return Faq().invoke("How long?", {"run_name": "faq"})[0].page_content


async def async_retrieval() -> object:
    """The same in a node, which calls a model after it."""

    async def look(_: State) -> State:
        found = await Faq().ainvoke("later?")
        return {"said": [found[0].page_content, await aasked("then")]}

    return (await graph_of("look", {"look": look}, [(START, "look")]).ainvoke({"said": []}))["said"]


def agent() -> object:
    """An agent whose model calls a tool."""
    made = create_agent(MODEL, [add], name="adder")
    return made.invoke({"messages": [{"role": "user", "content": "use add"}]})["messages"][-1].content


async def async_parts() -> None:
    for part in (async_graph, async_stream, async_retrieval):
        print(part.__name__, await part())


for part in (sync_graph, threads, stream, tools, interrupted, failing, retrieval, agent):
    print(part.__name__, part())
asyncio.run(async_parts())
