"""Faults of models and of what holds an agent together, over real SDKs and frameworks."""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import boto3
import httpx
import openai
import tenacity
from botocore.config import Config
from support.failing.agents import Agent
from support.failing.tool_faults import FAULTS, LOOK_UP, ORDER, Fault, fault
from support.servers.scripted import (
    Gate,
    Reply,
    ScriptedServer,
    anthropic_messages,
    json_reply,
    openai_responses,
    sse,
    sse_reply,
)

__all__ = ["FAULTS", "Fault"]


def refused(status: int, code: str, message: str) -> Reply:
    """What OpenAI answers if it refuses."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json_reply({"error": error}, status)


def refused_by_claude(status: int, kind: str, message: str) -> Reply:
    return json_reply({"type": "error", "error": {"type": kind, "message": message}}, status)


def gemini(server: ScriptedServer, status: int, name: str, message: str) -> None:
    """A call of Gemini that is refused."""
    from google import genai
    from google.genai import types

    said = {"error": {"code": status, "message": message, "status": name}}
    server.on(lambda one: "generateContent" in one.path, json_reply(said, status))
    options = types.HttpOptions(base_url=server.url, retry_options=types.HttpRetryOptions(attempts=1))
    client = genai.Client(api_key="k", http_options=options)
    client.models.generate_content(model="gemini-2.5-flash", contents="Hello")


def bedrock(server: ScriptedServer, status: int, kind: str, message: str) -> None:
    """A call of Bedrock that is refused."""
    reply = json_reply({"message": message}, status, {"x-amzn-errortype": kind})
    server.on(lambda one: "converse" in one.path, reply)
    client: Any = boto3.client(
        "bedrock-runtime",
        "eu-west-1",
        endpoint_url=server.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
    )
    client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "Hello"}]}])


# -- models: rate_limit


@fault("model", "rate_limit", "3")
def _(server: ScriptedServer) -> None:
    Agent(server).work(
        LOOK_UP,
        [("look_up", {"order": 2})],
        refused(
            429,
            "rate_limit_exceeded",
            "Rate limit reached for gpt-4o: Limit 30000, Used 29000. Please try again in 2s.",
        ),
        look_up=7,
    )


@fault("model", "rate_limit", "1")
def _(server: ScriptedServer) -> None:
    whole = anthropic_messages.message("Hello there")
    events = [*anthropic_messages.events(whole)][:3]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    Agent(server, "messages-stream").work(sse_reply(sse.events([*events, error])))


@fault("model", "rate_limit", "2")
def _(server: ScriptedServer) -> None:
    busy = json_reply({"error": {"message": "Too many requests"}}, 429, {"retry-after-ms": "1"})
    agent = Agent(server, "responses-async", retries=2)
    try:
        agent.work(LOOK_UP, busy, busy, busy, look_up="on its way")
    except openai.RateLimitError:
        print("I am busy.")


@fault("model", "rate_limit", "1")
def _(server: ScriptedServer) -> None:
    gemini(server, 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")


@fault("model", "rate_limit", "1")
def _(server: ScriptedServer) -> None:
    bedrock(server, 429, "ThrottlingException", "Too many tokens, please wait before trying again.")


# -- models: context_length_exceeded


@fault("model", "context_length_exceeded", "2")
def _(server: ScriptedServer) -> None:
    said = "This model's maximum context length is 128000 tokens, your messages have 130112 tokens."
    Agent(server, "chat-stream").work(
        LOOK_UP, refused(400, "context_length_exceeded", said), look_up="long"
    )


@fault("model", "context_length_exceeded", "1")
def _(server: ScriptedServer) -> None:
    said = "prompt is too long: 213410 tokens > 200000 maximum"
    Agent(server, "messages-stream").work(refused_by_claude(400, "invalid_request_error", said))


@fault("model", "context_length_exceeded", "1")
def _(server: ScriptedServer) -> None:
    said = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    gemini(server, 400, "INVALID_ARGUMENT", said)


@fault("model", "context_length_exceeded", "1")
def _(server: ScriptedServer) -> None:
    bedrock(server, 400, "ValidationException", "Input is too long for requested model.")


@fault("model", "context_length_exceeded", "1")
def _(server: ScriptedServer) -> None:
    begun = openai_responses.response([], status="in_progress")
    error = {
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
    }
    failed = {**begun, "status": "failed", "error": error}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": begun},
        {"type": "response.failed", "sequence_number": 1, "response": failed},
    ]
    client = openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    server.on("/v1/responses", sse_reply(sse.events(events)))
    for _part in client.responses.create(model="gpt-4o", input="long", stream=True):
        pass


# -- models: invalid_output


@fault("model", "invalid_output", "1.1")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "chat-stream", schemas={"look_up": ORDER})
    agent.work([("look_up", '{"order": 81')], "I cannot.", look_up="on its way")


@fault("model", "invalid_output", "1.1")
def _(server: ScriptedServer) -> None:
    choice = {"tool_choice": {"type": "tool", "name": "extract"}}
    agent = Agent(server, "messages", schemas={"extract": ORDER}, options=choice)
    agent.server.on("/v1/messages", agent.reply("", [("extract", {"order": "eighty-one"})]))
    agent._offered = ["extract"]
    _, calls = agent.ask([{"role": "user", "content": "Extract the order."}])
    print(calls[0][2])


@fault("model", "invalid_output", "2.1")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "responses", schemas={"look_up": ORDER})
    agent.work(LOOK_UP, [("refund_all", {})], "I cannot.", look_up="on its way")


@fault("model", "invalid_output", "1")
def _(server: ScriptedServer) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": ORDER}}
    said = Agent(server, options={"response_format": form}).work('{"order": "eighty-one"}')
    print(json.loads(said)["order"])


@fault("model", "invalid_output", "2")
def _(server: ScriptedServer) -> None:
    form = {"format": {"type": "json_schema", "name": "order", "schema": ORDER, "strict": True}}
    agent = Agent(server, "responses-async", options={"text": form})
    said = agent.work([("look_up", {})], 'Sure! Here it is: {"order": 81}', look_up=81)
    json.loads(said)


# -- models: timeout


@fault("model", "timeout", "1")
def _(server: ScriptedServer) -> None:
    Agent(server, timeout_s=0.1).work(Reply(before=Gate()))


@fault("model", "timeout", "2")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "messages-async", timeout_s=5.0)
    agent.options["timeout"] = 1.0
    agent.work(LOOK_UP, Reply(before=Gate()), look_up=81)


@fault("model", "timeout", "1")
def _(server: ScriptedServer) -> None:
    page = Reply([b"<html>504 Gateway Time-out</html>"], 504, [("content-type", "text/html")])
    Agent(server, "responses").work(page)


@fault("model", "timeout", "1")
def _(server: ScriptedServer) -> None:
    server.on("/v1/chat/completions", Reply(before=Gate()))

    async def asked() -> Any:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
        question: Any = [{"role": "user", "content": "Hello"}]
        return await asyncio.wait_for(
            client.chat.completions.create(model="gpt-4o", messages=question), 0.5
        )

    asyncio.run(asked())


@fault("model", "timeout", "1")
def _(server: ScriptedServer) -> None:
    gemini(server, 504, "DEADLINE_EXCEEDED", "The request timed out. Please try again.")


# -- models: quota_exceeded


@fault("model", "quota_exceeded", "1")
def _(server: ScriptedServer) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    Agent(server, "chat-async").work(refused(429, "insufficient_quota", said))


@fault("model", "quota_exceeded", "2")
def _(server: ScriptedServer) -> None:
    said = "Your credit balance is too low to access the Anthropic API."
    Agent(server, "messages").work(
        LOOK_UP, refused_by_claude(400, "invalid_request_error", said), look_up=81
    )


@fault("model", "quota_exceeded", "1")
def _(server: ScriptedServer) -> None:
    said = "Billing hard limit has been reached"
    Agent(server, "responses-stream").work(refused(429, "billing_hard_limit_reached", said))


@fault("model", "quota_exceeded", "1")
def _(server: ScriptedServer) -> None:
    Agent(server, "chat-stream").work(refused(402, "invalid_request_error", "Insufficient Balance"))


@fault("model", "quota_exceeded", "1")
def _(server: ScriptedServer) -> None:
    said = "You exceeded your current quota, please check your plan and billing details."
    gemini(server, 429, "RESOURCE_EXHAUSTED", said)


# -- orchestration: max_retries_exceeded


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def graph(*nodes: tuple[str, Callable[[Any], Any], str], **config: Any) -> Any:
    """Run a graph of LangGraph whose nodes each name the next one."""
    from langgraph.graph import START, StateGraph

    made: Any = StateGraph(State)
    for name, function, after in nodes:
        made.add_node(name, function)
        made.add_edge(name, after)
    made.add_edge(START, nodes[0][0])
    return made.compile(name="orders").invoke({"said": []}, config)


@fault("orchestration", "max_retries_exceeded", "")
def _(server: ScriptedServer) -> None:
    agent = Agent(server)
    server.on("/v1/chat/completions", agent.reply("again"), repeat=True)
    graph(
        ("think", lambda _: {"said": [agent.work()]}, "check"),
        ("check", lambda _: {"said": ["not yet"]}, "think"),
        recursion_limit=6,
    )


@fault("orchestration", "max_retries_exceeded", "")
def _(server: ScriptedServer) -> None:
    import agents

    agents.set_tracing_disabled(False)
    agents.set_trace_processors([])
    calls = openai_responses.function_call("c", "look_up", {"order": 81})
    server.on("/v1/responses", json_reply(openai_responses.response([calls])), repeat=True)
    client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)

    @agents.function_tool
    def look_up(order: int) -> str:
        """Look up an order."""
        return "not there yet"

    model = agents.OpenAIResponsesModel("gpt-4o", client)
    agents.Runner.run_sync(agents.Agent("shop", tools=[look_up], model=model), "Hello", max_turns=2)


@fault("orchestration", "max_retries_exceeded", "")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "messages")
    server.on("/v1/messages", agent.reply("no plan"), repeat=True)

    @tenacity.retry(stop=tenacity.stop_after_attempt(3))
    def plan() -> None:
        if "steps" not in agent.work():
            raise ValueError("the plan has no steps")

    plan()


@fault("orchestration", "max_retries_exceeded", "")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "responses")
    for _attempt in range(3):
        agent.work("no plan")
    raise RuntimeError("gave up after 3 attempts")


@fault("orchestration", "max_retries_exceeded", "")
def _(server: ScriptedServer) -> None:
    class TooManyTurns(Exception):
        pass

    agent = Agent(server, "chat-stream")
    agent.work(LOOK_UP, LOOK_UP, "Not yet.", look_up="on its way")
    raise TooManyTurns("turn limit reached: 10")


# -- orchestration: invalid_state


@fault("orchestration", "invalid_state", "")
def _(server: ScriptedServer) -> None:
    agent = Agent(server)
    graph(
        ("think", lambda _: {"said": [agent.work("fine")]}, "store"),
        ("store", lambda _: ["no dictionary"], "__end__"),
    )


@fault("orchestration", "invalid_state", "")
def _(server: ScriptedServer) -> None:
    Agent(server, "messages").work("fine")
    raise RuntimeError("cannot transition from 'refunded' to 'shipped'")


@fault("orchestration", "invalid_state", "")
def _(server: ScriptedServer) -> None:
    async def work() -> None:
        await asyncio.to_thread(Agent(server, "responses").work, "fine")
        asyncio.get_running_loop().create_future().result()

    asyncio.run(work())


@fault("orchestration", "invalid_state", "")
def _(server: ScriptedServer) -> None:
    class IllegalStateTransition(Exception):
        pass

    Agent(server, "chat-async").work(LOOK_UP, "fine", look_up=81)
    raise IllegalStateTransition("planning → done")


@fault("orchestration", "invalid_state", "")
def _(server: ScriptedServer) -> None:
    Agent(server, "messages-stream").work("fine")
    raise ValueError("unexpected state: the order is already refunded")


# -- orchestration: constraint_violation


@fault("orchestration", "constraint_violation", "")
def _(server: ScriptedServer) -> None:
    import agents

    agents.set_trace_processors([])

    @agents.output_guardrail
    async def polite(_: Any, agent: Any, said: Any) -> Any:
        return agents.GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    said = openai_responses.response([openai_responses.message("Damn.")])
    server.on("/v1/responses", json_reply(said))
    client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    model = agents.OpenAIResponsesModel("gpt-4o", client)
    shop = agents.Agent("shop", model=model, output_guardrails=[polite])
    agents.Runner.run_sync(shop, "Hello")


@fault("orchestration", "constraint_violation", "")
def _(server: ScriptedServer) -> None:
    class BudgetExceeded(Exception):
        pass

    Agent(server).work(LOOK_UP, "fine", look_up=81)
    raise BudgetExceeded("0.52 USD of 0.50 USD are spent")


@fault("orchestration", "constraint_violation", "")
def _(server: ScriptedServer) -> None:
    Agent(server, "messages").work("refund 500 EUR")
    raise ValueError("policy violation: refunds over 100 EUR need an approval")


@fault("orchestration", "constraint_violation", "")
def _(server: ScriptedServer) -> None:
    Agent(server, "responses").work("fine")
    raise SystemExit("blocked by guardrail: the answer names a customer")


@fault("orchestration", "constraint_violation", "")
def _(server: ScriptedServer) -> None:
    Agent(server, "chat-stream").work("fine")
    raise PermissionError("write to /etc is not allowed in this sandbox")


# -- orchestration: uncaught_exception


@fault("orchestration", "uncaught_exception", "")
def _(server: ScriptedServer) -> None:
    said = Agent(server).work(LOOK_UP, '{"total": 7}', look_up=81)
    print(json.loads(said)["sum"])


@fault("orchestration", "uncaught_exception", "")
def _(server: ScriptedServer) -> None:
    said = Agent(server, "messages-stream").work("12")
    print(int(said) / (len(said) - 2))


@fault("orchestration", "uncaught_exception", "")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "chat-async")
    graph(
        ("think", lambda _: {"said": [agent.work("fine")]}, "store"),
        ("store", lambda state: {"said": [state["answer"]]}, "__end__"),
    )


@fault("orchestration", "uncaught_exception", "")
def _(server: ScriptedServer) -> None:
    good = json_reply({"status": "on its way"})
    server.on("/orders", good)
    status = httpx.get(f"{server.url}/orders").json()["status"]
    Agent(server, "responses").work("fine")
    raise TypeError(f"unsupported operand: {status}")


@fault("orchestration", "uncaught_exception", "")
def _(server: ScriptedServer) -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(Agent(server, "responses").work, "fine"))
        raise AttributeError("'NoneType' object has no attribute 'text'")

    asyncio.run(work())
