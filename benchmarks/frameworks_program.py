"""One agent per framework, each with a tool: a model calls it, and answers with what it returned.

``frameworks_program.py FRAMEWORK TRACING RUNS``: runs the agent that often after a warm-up and prints
the processor time of each run in ms, with all threads. ``TRACING``: ``own`` switches on what the
framework's documentation tells to trace with, sent to ``OTLP_SINK``; ``none`` does not.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

WARM = 5
SINK = os.environ.get("OTLP_SINK", "")


def look_up(order: int) -> str:
    """Look up an order."""
    return f"order {order}"


async def look_up_later(order: int) -> str:
    """Look up an order."""
    return look_up(order)


def sdk() -> Any:
    """OpenTelemetry's SDK, which sends to the sink in batches."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{SINK}/v1/traces")))
    trace.set_tracer_provider(provider)
    return provider


def langgraph(own: bool) -> Callable[[], Any]:
    """Its own tracing is that of LangSmith."""
    if own:
        os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": SINK, "LANGSMITH_API_KEY": "k"}
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    agent: Any = create_agent(ChatOpenAI(model="gpt-4o", max_retries=0), [tool(look_up)])
    said: Any = {"messages": [{"role": "user", "content": "refund"}]}
    return lambda: agent.invoke(said)["messages"][-1].content


def openai_agents(own: bool) -> Callable[[], Awaitable[Any]]:
    """Its own tracing posts to its vendor, here to the sink."""
    from agents import Agent, Runner, function_tool, set_default_openai_api, set_trace_processors
    from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

    set_default_openai_api("chat_completions")
    ingest = BackendSpanExporter(api_key="k", endpoint=f"{SINK}/v1/traces/ingest")
    set_trace_processors([BatchTraceProcessor(ingest)] if own else [])
    agent: Any = Agent(
        name="billing",
        instructions="billing",
        model="gpt-4o",
        tools=[function_tool(look_up_later, name_override="look_up")],
    )

    async def run() -> Any:
        return (await Runner.run(agent, "refund")).final_output

    return run


def pydantic_ai(own: bool) -> Callable[[], Awaitable[Any]]:
    """Its own tracing is OpenTelemetry's."""
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel

    if own:
        Agent.instrument_all(InstrumentationSettings(tracer_provider=sdk()))
    agent = Agent(OpenAIChatModel("gpt-4o"), name="billing", tools=[look_up])

    async def run() -> Any:
        return (await agent.run("refund")).output

    return run


def haystack(own: bool) -> Callable[[], Any]:
    """Its own tracing is in packages of its integrations, which are not installed here."""
    if own:
        raise SystemExit("this framework has no built-in tracing to compare with")
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool

    number = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
    tool = Tool("look_up", "Look up an order.", number, look_up)
    agent = Agent(chat_generator=OpenAIChatGenerator(model="gpt-4o", max_retries=0), tools=[tool])
    return lambda: agent.run([ChatMessage.from_user("refund")])["messages"][-1].text


def autogen(own: bool) -> Callable[[], Awaitable[Any]]:
    """Its own tracing is OpenTelemetry's."""
    if own:
        sdk()
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="gpt-4o", parallel_tool_calls=False)

    async def run() -> Any:
        agent = AssistantAgent("billing", client, tools=[look_up], reflect_on_tool_use=True)
        return (await agent.run(task="refund")).messages[-1].to_text()

    return run


def crewai(own: bool) -> Callable[[], Awaitable[Any]]:
    """Its own tracing needs an account with its vendor."""
    if own:
        raise SystemExit("this framework has no built-in tracing to compare with")
    from crewai import LLM, Agent
    from crewai.tools import tool

    model = LLM("openai/gpt-4o")
    made: Any = {"role": "billing", "goal": "refund", "backstory": "none", "llm": model}

    async def run() -> Any:
        return (await Agent(**made, tools=[tool("look_up")(look_up)]).kickoff_async("refund")).raw

    return run


AGENTS: dict[str, Callable[[bool], Callable[[], Any]]] = {
    "LangGraph": langgraph,
    "OpenAI Agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "Haystack": haystack,
    "AutoGen": autogen,
    "CrewAI": crewai,
}
SAID = "it was order 81"
"""What the provider answers in the end."""


async def runs(run: Callable[[], Any], number: int) -> float:
    """Mean processor time of a run, in ms."""
    began = 0.0
    for one in range(WARM + number):
        if one == WARM:
            began = time.process_time()
        done = run()
        said = await done if isinstance(done, Awaitable) else done
        assert said == SAID, said
    return (time.process_time() - began) / number * 1000


if __name__ == "__main__":
    print(asyncio.run(runs(AGENTS[sys.argv[1]](sys.argv[2] == "own"), int(sys.argv[3]))))
