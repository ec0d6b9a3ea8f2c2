"""What programs do with Haystack: each part prints what it did."""

import asyncio

from haystack import Document, Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import Tool

import playhead

NUMBER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def model(**more: object) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(model="gpt-4o", max_retries=0, **more)


def look_up(order: int) -> str:
    return f"order {order}"


def ask_expert(text: str) -> str:
    return model().run([ChatMessage.from_user(text)])["replies"][0].text or ""


def fail(text: str) -> str:
    raise ValueError(text)


@playhead.tool
def charged(order: int) -> str:
    return f"charged {order}"


LOOK_UP = Tool("look_up", "Look up an order.", NUMBER, look_up)
ASK_EXPERT = Tool("ask_expert", "Ask another model.", TEXT, ask_expert)
FAIL = Tool("fail", "Fail.", TEXT, fail)
CHARGE = Tool("charged", "Charge an order.", NUMBER, charged)


def agent(name: str, *tools: Tool, **more: object) -> Agent:
    return Agent(
        chat_generator=model(), system_prompt=name, tools=list(tools), tool_concurrency_limit=1, **more
    )


def retrieval() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents([Document(id="faq-7", content="Refunds take 3 days.", meta={"page": 3})])
    pipeline = Pipeline()
    pipeline.add_component("faq", InMemoryBM25Retriever(store))
    template = [ChatMessage.from_user("{{ documents[0].content }} {{ question }}")]
    pipeline.add_component("prompt", ChatPromptBuilder(template, required_variables="*"))
    pipeline.add_component("model", model())
    pipeline.connect("faq.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    return pipeline


QUESTION = {"faq": {"query": "refunds"}, "prompt": {"question": "How long?"}}


def query() -> object:
    """A pipeline with a retriever and a model."""
    return retrieval().run(QUESTION)["model"]["replies"][0].text


async def async_query() -> object:
    return (await retrieval().run_async(QUESTION))["model"]["replies"][0].text


def one_agent() -> object:
    """An agent in a pipeline calls two tools, of which one calls a model; it streams."""
    said: list[str] = []
    pipeline = Pipeline()
    pipeline.add_component("billing", agent("billing", LOOK_UP, ASK_EXPERT))
    messages = [ChatMessage.from_user("refund")]
    result = pipeline.run(
        {
            "billing": {
                "messages": messages,
                "streaming_callback": lambda chunk: said.append(chunk.content),
            }
        }
    )
    return [result["billing"]["last_message"].text, "".join(said)]


def errors() -> object:
    """A tool fails; another one is marked for the recording, too."""
    result = agent("failing", FAIL, CHARGE).run([ChatMessage.from_user("try")])
    return result["last_message"].text


async def async_agent() -> object:
    result = await agent("later", LOOK_UP).run_async([ChatMessage.from_user("refund")])
    return result["last_message"].text


def failing() -> object:
    """A component fails, and the pipeline with it."""
    try:
        retrieval().run({"faq": {"query": "refunds", "top_k": -1}, "prompt": {"question": "?"}})
    except Exception as error:
        return type(error).__name__
    return None


for part in (query, one_agent, errors, failing):
    print(part.__name__, part())
for asynchronous in (async_query, async_agent):
    print(asynchronous.__name__, asyncio.run(asynchronous()))
