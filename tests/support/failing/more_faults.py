"""More faults, most of them as texts and exceptions that libraries, tools and providers write."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import sqlite3
import urllib.request
import xml.etree.ElementTree
from collections.abc import Callable
from typing import Any

import aiohttp
import openai
import pydantic
import requests
from support.failing.agents import Agent, get
from support.failing.good_runs import SDKS, Good, answers
from support.failing.other_faults import Fault, bedrock, gemini, refused, refused_by_claude
from support.failing.tool_faults import marked, raising
from support.servers.ports import closed
from support.servers.scripted import (
    Gate,
    Reply,
    ScriptedServer,
    hang_up,
    json_reply,
    openai_chat,
)

import playhead

MORE_FAULTS: list[Fault] = []
_sdks = itertools.cycle(SDKS)


def fault(kind: str, code: str, place: str) -> Callable[[Any], Any]:
    def added(program: Callable[[ScriptedServer], object]) -> Callable[[ScriptedServer], object]:
        MORE_FAULTS.append((kind, code, place, program))
        return program

    return added


def says(kind: str, code: str, tool: str, result: Any, *, second: bool = False) -> None:
    """Add a tool whose result says that it failed."""
    sdk = next(_sdks)

    @fault(kind, code, "2.1" if second else "1.1")
    def _(server: ScriptedServer) -> None:
        first = [[("today", {"city": "Oslo"})]] if second else []
        tools = {"today": "Monday", tool: result}
        Agent(server, sdk).work(*first, [(tool, {"key": "8127"})], "I could not do it.", **tools)


def raises(
    kind: str, code: str, tool: str, error: Exception, how: str = "text", *, is_marked: bool = False
) -> None:
    """Add a tool that raises. ``is_marked``: whether the tool has a span."""
    sdk = next(_sdks)

    @fault(kind, code, "2" if is_marked else "1.1")
    def _(server: ScriptedServer) -> None:
        function = marked(tool, error) if is_marked else raising(error)
        agent = Agent(server, sdk, handled=how)
        agent.work([(tool, {"key": "8127"})], "I could not do it.", **{tool: function})


async def _by_aiohttp(url: str) -> Any:
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.get(url) as answer:
            return await answer.json()


def _by_urllib(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.loads(answer.read())


def _by_requests(url: str) -> Any:
    answer = requests.get(url, timeout=20)
    answer.raise_for_status()
    return answer.json()


CLIENTS: dict[str, Callable[[str], Any]] = {
    "aiohttp": lambda url: asyncio.run(_by_aiohttp(url)),
    "httpx": get,
    "requests": _by_requests,
    "urllib": _by_urllib,
}


def answers_badly(
    kind: str,
    code: str,
    tool: str,
    reply: Reply,
    client: str,
    how: str = "text",
    use: Callable[[Any], Any] = lambda value: value,
    path: str = "/orders/8127",
) -> None:
    """Add a tool whose server answers like this."""
    sdk = next(_sdks)

    @fault(kind, code, "2")
    def _(server: ScriptedServer) -> None:
        server.on(path, reply, repeat=True)
        last = [] if how == "raise" else ["I could not do it."]
        agent = Agent(server, sdk, handled=how)

        def call(**_: Any) -> Any:
            return use(CLIENTS[client](f"{server.url}{path}"))

        tools: dict[str, Any] = {tool: call}
        agent.work([(tool, {"key": "8127"})], *last, **tools)


def ends(code: str, *errors: BaseException) -> None:
    """Add programs that end with an error."""
    for error in errors:
        sdk = next(_sdks)

        def program(server: ScriptedServer, sdk: str = sdk, error: BaseException = error) -> None:
            Agent(server, sdk).work([("look_up", {"order": 8127})], "fine", look_up="on its way")
            raise error

        fault("orchestration", code, "")(program)


def of_model(code: str, sdk: str, reply: Reply, *, second: bool = False, **fields: Any) -> None:
    """Add a model that answers like this."""

    @fault("model", code, "2" if second else "1")
    def _(server: ScriptedServer) -> None:
        first = [[("look_up", {"order": 8127})]] if second else []
        Agent(server, sdk, **fields).work(*first, reply, look_up="on its way")


class OwnError(Exception):
    pass


class MaxIterationsError(Exception):
    pass


class InvalidTransition(Exception):
    pass


class PolicyViolation(Exception):
    pass


says("tool", "timeout", "get_weather", "Operation timed out after 30000 milliseconds")
says("tool", "timeout", "run_code", '{"status": "timed out"}', second=True)
raises("tool", "timeout", "get_weather", OwnError("context deadline exceeded"), "json")
raises("tool", "timeout", "fetch_page", TimeoutError("Timeout 30000ms exceeded."), is_marked=True)
answers_badly("tool", "timeout", "get_weather", json_reply({"m": "late"}, 408), "aiohttp")
answers_badly("tool", "timeout", "get_weather", Reply([b"<html>late"], 504), "urllib", "json")

page = Reply([b"<html>hi</html>"], headers=[("content-type", "text/html")])
answers_badly("tool", "invalid_response", "get_weather", page, "aiohttp")
answers_badly("tool", "invalid_response", "get_weather", Reply([b""]), "urllib")
answers_badly(
    "tool",
    "invalid_response",
    "get_weather",
    json_reply({"temp_c": 4}),
    "httpx",
    use=lambda value: value["temperature"],
)
answers_badly(
    "tool", "invalid_response", "get_weather", json_reply([]), "requests", "json", lambda value: value[0]
)
answers_badly(
    "tool",
    "invalid_response",
    "read_feed",
    json_reply("<feed><a></feed>"),
    "requests",
    "text",
    xml.etree.ElementTree.fromstring,
)
says("tool", "invalid_response", "get_weather", "Error: got HTML instead of JSON")

answers_badly("tool", "connection_error", "get_weather", hang_up(), "urllib")
says("tool", "connection_error", "get_weather", "Could not connect to Redis: Connection refused.")
says("tool", "connection_error", "get_weather", '{"errorMessage": "getaddrinfo ENOTFOUND a.example"}')
unknown_host = socket.gaierror(-2, "Name or service not known")
raises("tool", "connection_error", "get_weather", unknown_host, "json")
raises("tool", "connection_error", "send_mail", BrokenPipeError(32, "Broken pipe"), is_marked=True)


@fault("tool", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    def call(**_: Any) -> Any:
        return urllib.request.urlopen(f"http://127.0.0.1:{closed()}/x").read()

    agent = Agent(server, "messages", handled="raise")
    agent.work([("get_weather", {"key": "x"})], get_weather=call)


answers_badly("tool", "api_error", "get_weather", json_reply({"m": "x"}, 404), "urllib", "json")
answers_badly("tool", "api_error", "get_weather", json_reply({"m": "x"}, 409), "aiohttp")
answers_badly("tool", "api_error", "get_weather", Reply([b"Bad Gateway"], 502), "requests", "raise")
missing = FileNotFoundError(2, "No such file or directory: 'a.csv'")
raises("tool", "api_error", "read_file", missing)
raises("tool", "api_error", "read_file", missing, is_marked=True)
says("tool", "api_error", "get_weather", "Failed: the station is closed", second=True)
says("tool", "api_error", "refund", '{"code": 500, "message": "Internal Server Error"}')

answers_badly("tool", "auth_error", "get_weather", json_reply({"m": "x"}, 403), "aiohttp")
answers_badly("tool", "auth_error", "get_weather", json_reply({"m": "x"}, 401), "urllib", "raise")
says("tool", "auth_error", "get_weather", "Access denied")
says("tool", "auth_error", "get_weather", '{"detail": "Not authenticated"}')
no_right = OwnError("You do not have permission to read orders")
raises("tool", "auth_error", "get_weather", no_right, "json")
revoked = OwnError("invalid_grant: Token has been expired or revoked.")
raises("tool", "auth_error", "get_weather", revoked, is_marked=True)

said = "This request would exceed your organization's rate limit of 40,000 input tokens per minute"
of_model("rate_limit", "messages-async", refused_by_claude(429, "rate_limit_error", said))
of_model("rate_limit", "messages", refused_by_claude(529, "overloaded_error", "Overloaded"), second=True)
of_model("rate_limit", "chat-async", refused(429, "rate_limit_exceeded", "Rate limit reached"))

said = "Your input exceeds the context window of this model."
of_model("context_length_exceeded", "responses", refused(400, "x", said), second=True)
said = "Invalid 'messages[0].content': string too long. Expected a maximum length of 1048576"
of_model("context_length_exceeded", "chat", refused(400, "string_above_max_length", said))
said = "input length and `max_tokens` exceed context limit: 198000 + 8000 > 200000"
of_model(
    "context_length_exceeded", "messages-async", refused_by_claude(400, "invalid_request_error", said)
)
too_large = refused_by_claude(413, "request_too_large", "Request exceeds the maximum allowed size.")
of_model("context_length_exceeded", "messages", too_large)

said = "Your organization has reached its monthly spend limit"
of_model("quota_exceeded", "messages", refused_by_claude(403, "billing_error", said))
said = "You have reached your specified API usage limits. You will regain access on 2026-12-01"
of_model("quota_exceeded", "messages-stream", refused_by_claude(400, "invalid_request_error", said))
of_model("quota_exceeded", "chat", refused(402, "payment_required", "Insufficient credits. Add more"))
quota = refused(429, "insufficient_quota", "You exceeded your current quota")
of_model("quota_exceeded", "responses-async", quota, second=True)

of_model("timeout", "messages-stream", Reply(before=Gate()), timeout_s=0.1)
of_model("timeout", "chat-stream", Reply(before=Gate()), timeout_s=1.0, second=True)
of_model("timeout", "responses-async", json_reply({"error": {"message": "Request Timeout"}}, 408))


@fault("model", "rate_limit", "1")
def _(server: ScriptedServer) -> None:
    bedrock(server, 503, "ServiceUnavailableException", "Too many connections, please slow down")


@fault("model", "rate_limit", "1")
def _(server: ScriptedServer) -> None:
    gemini(server, 503, "UNAVAILABLE", "The model is overloaded. Please try again later.")


@fault("model", "timeout", "1")
def _(server: ScriptedServer) -> None:
    bedrock(server, 408, "ModelTimeoutException", "The model took too long")


LOOK_UP = {
    "type": "object",
    "properties": {"order": {"type": "integer"}, "reason": {"enum": ["late", "lost"]}},
    "required": ["order"],
    "additionalProperties": False,
}
for arguments in ({"order": 1, "reason": "bored"}, {"order": 1, "more": 2}, {}, "[1]", "{order: 81}"):
    wire = "chat-async" if isinstance(arguments, str) else next(_sdks)

    @fault("model", "invalid_output", "1.1")
    def _(server: ScriptedServer, wire: str = wire, arguments: Any = arguments) -> None:
        agent = Agent(server, wire, schemas={"look_up": LOOK_UP})
        agent.work([("look_up", arguments)], "I cannot.", look_up="on its way")


class Order(pydantic.BaseModel):
    id: int


@fault("model", "invalid_output", "1")
def _(server: ScriptedServer) -> None:
    Order.model_validate_json(Agent(server, "messages").work("The id is seven"))


@fault("model", "invalid_output", "1")
def _(server: ScriptedServer) -> None:
    server.on("/v1/chat/completions", json_reply(openai_chat.completion('{"id": "seven"}')))
    client = openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    question: Any = [{"role": "user", "content": "Which?"}]
    client.chat.completions.parse(model="gpt-4o", messages=question, response_format=Order)


says("retrieval", "no_results", "search_docs", '{"web": {"results": []}}')
says("retrieval", "no_results", "retrieve_documents", "None")
says("retrieval", "no_results", "search_kb", "The search returned no results.", second=True)
says("retrieval", "no_results", "vector_search", '{"ids": [[]], "documents": [[]], "distances": [[]]}')
nothing = json_reply({"response": {"numFound": 0, "docs": []}})
answers_badly("retrieval", "no_results", "search_docs", nothing, "httpx", path="/solr/select")
answers_badly(
    "retrieval", "no_results", "web_search", json_reply({"organic": []}), "aiohttp", path="/search"
)


@fault("retrieval", "no_results", "2")
def _(server: ScriptedServer) -> None:
    @playhead.tool
    def search_docs(key: str) -> list[str]:
        return []

    agent = Agent(server, "chat-async")
    agent.work([("search_docs", {"key": "x"})], "I do not know.", search_docs=search_docs)


answers_badly(
    "retrieval", "connection_error", "search_docs", hang_up(), "urllib", "json", path="/search"
)
unreached = OwnError("Fail connecting to server on localhost:19530, server unavailable")
raises("retrieval", "connection_error", "search_docs", unreached)
reset = ConnectionResetError(104, "Connection reset by peer")
raises("retrieval", "connection_error", "retrieve_context", reset, "flag", is_marked=True)
says("retrieval", "connection_error", "vector_search", "Cannot connect to Qdrant at 10.0.0.7:6333")

answers_badly(
    "retrieval", "timeout", "search_docs", json_reply({"m": "x"}, 408), "urllib", path="/search"
)
raises("retrieval", "timeout", "search_docs", OwnError("Search took longer than 10 s"))
raises("retrieval", "timeout", "semantic_search", TimeoutError(), is_marked=True)
says("retrieval", "timeout", "knowledge_base", {"error": {"reason": "Time limit of 5s exceeded"}})

answers_badly(
    "retrieval", "invalid_query", "search_docs", json_reply({"m": "x"}, 422), "aiohttp", path="/search"
)
says("retrieval", "invalid_query", "search_docs", "Error: unknown operator $foo in filter", second=True)
says("retrieval", "invalid_query", "vector_search", "Error: Embedding dimension 768 does not match 1536")
unparsed = OwnError("Cannot parse 'foo AND': Encountered <EOF>")
raises("retrieval", "invalid_query", "search_docs", unparsed, "json", is_marked=True)
raises("retrieval", "invalid_query", "run_sql", sqlite3.OperationalError("no such column: nam"))

ends(
    "max_retries_exceeded",
    RuntimeError("exceeded 10 steps"),
    MaxIterationsError("10"),
    RuntimeError("no valid plan in 5 attempts"),
    SystemExit("Stopped: iteration limit of 5 reached"),
    RuntimeError("retried 5 times, stopping"),
    RuntimeError("giving up on the order after 3 tries"),
)
ends(
    "invalid_state",
    RuntimeError("agent is in state DONE, expected RUNNING"),
    InvalidTransition("draft to paid"),
    ValueError("unknown state 'plannning'"),
    RuntimeError("cannot resume a finished session"),
    AssertionError("state must be 'planning'"),
    RuntimeError("order already shipped"),
)
ends(
    "constraint_violation",
    PolicyViolation("a name in the answer"),
    RuntimeError("refund exceeds the limit of 100 EUR"),
    RuntimeError("requires human approval"),
    SystemExit("denied by the policy engine"),
    ValueError("amount 900 is above the maximum of 500"),
    RuntimeError("Budget has been exceeded! Current cost: 1.2"),
)
ends(
    "uncaught_exception",
    KeyError("state"),
    AttributeError("'str' object has no attribute 'status'"),
    ValueError("not enough values to unpack"),
    FileNotFoundError(2, "No such file or directory", "policy.md"),
    RuntimeError("dictionary changed size during iteration"),
    NotImplementedError(),
)

MORE_GOOD: list[Good] = [
    answers("look_up", "Token expired on 3 May and was renewed; status active"),
    answers("look_up", "The operation failed twice in 1986 and succeeded in 1988"),
    answers("look_up", "Database error rate: 0.1 %, network error rate 0.2 %"),
    answers("look_up", {"exception": "public holidays", "open": "9-17"}),
    answers("look_up", {"fault": "gearbox", "car": "VW", "cost": 400}),
    answers("look_up", {"message": "the order is on its way"}),
    answers("look_up", "{'error': None, 'rows': 3}"),
    answers("search_docs", "No information may be passed to third parties."),
    answers("search_docs", "The index has no documents older than 2020; the newest is from May."),
    answers("search_docs", {"title": "Refunds", "sections": []}),
    answers("search_docs", {"answer": "Refunds take 5 days.", "results": []}),
    answers("search_docs", {"score": 0.1, "chunk": "Refunds take 5 days.", "images": []}),
    answers("get_context", "Could not find a better price? We match it."),
]
"""Texts about failures, and results with an empty list in them."""
