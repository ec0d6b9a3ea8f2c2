"""What programs do with LlamaIndex: each part prints what it did."""

from __future__ import annotations

import asyncio
import os

from llama_index.core import Document, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI

import playhead

BASE = os.environ["OPENAI_BASE_URL"]
MODEL = OpenAI(model="gpt-4o", max_retries=0, api_base=BASE)
EMBEDDING = OpenAIEmbedding(max_retries=0, api_base=BASE)


async def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


def ask_expert(question: str) -> str:
    """Ask another model."""
    return str(MODEL.complete(question))


async def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


def agent(name: str, *tools: object, **more: object) -> FunctionAgent:
    return FunctionAgent(
        name=name, description=name, system_prompt=name, tools=list(tools), llm=MODEL, **more
    )


async def one_agent() -> object:
    """An agent streams, and calls two tools at once, of which one calls a model."""
    return str(await agent("billing", look_up, ask_expert).run("refund"))


async def errors() -> object:
    """A tool fails; another one is marked for the recording, too."""
    return str(await agent("failing", fail, charged).run("try"))


async def handoff() -> object:
    """An agent hands over to another one; the program calls a model between the events."""
    team = AgentWorkflow(
        agents=[
            agent("triage", can_handoff_to=["refunds"]),
            agent("refunds", look_up, can_handoff_to=["triage"]),
        ],
        root_agent="triage",
    )
    handler = team.run("hand over")
    said: list[str] = []
    async for event in handler.stream_events():
        if type(event).__name__ == "ToolCallResult":
            said.append(str(await MODEL.acomplete("between")))
    return [*said, str(await handler)]


class Planned(Event):
    part: str


class Done(Event):
    text: str


class Flow(Workflow):
    @step
    async def plan(self, ctx: Context, ev: StartEvent) -> Planned | None:
        await MODEL.acomplete("plan")
        for part in ("left", "right"):
            ctx.send_event(Planned(part=part))
        return None

    @step
    async def work(self, ev: Planned) -> Done:
        return Done(text=str(await MODEL.acomplete(ev.part)))

    @step(num_workers=1)  # LlamaIndex runs a join again that overlaps with another one
    async def join(self, ctx: Context, ev: Done) -> StopEvent | None:
        done = ctx.collect_events(ev, [Done, Done])
        return None if done is None else StopEvent(result=sorted(one.text for one in done))


class Failing(Workflow):
    @step
    async def decline(self, ev: StartEvent) -> StopEvent:
        raise ValueError("card declined")


HANGS = asyncio.Event()


class Endless(Workflow):
    @step
    async def hang(self, ev: StartEvent) -> StopEvent:
        HANGS.set()
        await asyncio.Event().wait()
        return StopEvent()


async def workflow() -> object:
    """Two steps at once, and one after them."""
    return await Flow().run()


async def failing() -> object:
    try:
        await Failing().run()
    except ValueError as error:
        return str(error)
    return None


async def cancelled() -> object:
    """A workflow is cancelled, and the program calls a model after it."""
    handler = Endless().run()
    await HANGS.wait()
    await handler.cancel_run()
    try:
        await handler
    except Exception as error:
        return [type(error).__name__, str(await MODEL.acomplete("after"))]
    return None


def tools() -> object:
    """Tools that the program calls itself."""
    return str(FunctionTool.from_defaults(ask_expert)(question="direct"))


DOCUMENTS = [Document(text="Refunds take 3 days.", id_="faq-7", metadata={"page": 3})]


def query() -> object:
    """A retriever, a query engine, and an engine as a tool."""
    index = VectorStoreIndex.from_documents(DOCUMENTS, embed_model=EMBEDDING)
    found = index.as_retriever().retrieve("How long?")
    engine = index.as_query_engine(llm=MODEL)
    tool = QueryEngineTool.from_defaults(engine, name="faq", description="FAQ")
    return [found[0].text, str(engine.query("How long?")), str(tool("Why?"))]


async def chat() -> object:
    """A chat engine that streams, in an index that needs no embeddings."""
    index = SummaryIndex.from_documents(DOCUMENTS)
    engine = index.as_chat_engine(chat_mode="context", llm=MODEL)
    response = await engine.astream_chat("How long?")
    return "".join([part async for part in response.async_response_gen()])


async def main() -> None:
    for part in (one_agent, errors, handoff, workflow, failing, cancelled, chat):
        print(part.__name__, await part())


for part in (tools, query):
    print(part.__name__, part())
asyncio.run(main())
