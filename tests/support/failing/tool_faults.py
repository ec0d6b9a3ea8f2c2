"""Faults of tools and of retrieval, in agents over real SDKs and clients."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pydantic
import requests
from support.failing.agents import Agent, get
from support.servers.ports import closed
from support.servers.scripted import Gate, Reply, ScriptedServer, hang_up, json_reply

import playhead

Fault = tuple[str, str, str, Callable[[ScriptedServer], object]]
"""Type, code, place and program."""
FAULTS: list[Fault] = []

ORDER = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
LOOK_UP = [("look_up", {"order": 8127})]
SEARCH = [("search_docs", {"query": "refund policy"})]


def fault(kind: str, code: str, place: str) -> Callable[[Any], Any]:
    def added(program: Callable[[ScriptedServer], object]) -> Callable[[ScriptedServer], object]:
        FAULTS.append((kind, code, place, program))
        return program

    return added


def raising(error: Exception) -> Callable[..., Any]:
    """A tool that fails."""

    def tool(**_: Any) -> Any:
        raise error

    return tool


def marked(name: str, error: Exception) -> Callable[..., Any]:
    """A tool with a span of its own that fails."""
    tool = raising(error)
    tool.__name__ = name
    return playhead.tool(tool)


def fetch(server: ScriptedServer, reply: Reply, path: str = "/orders/8127", **options: Any) -> Any:
    """A tool that makes a request."""
    server.on(path, reply, repeat=True)
    return lambda **_: get(f"{server.url}{path}", **options)


def request(server: ScriptedServer, reply: Reply, path: str = "/orders/8127") -> Any:
    """The same with requests."""
    server.on(path, reply, repeat=True)

    def tool(**_: Any) -> Any:
        answer = requests.get(f"{server.url}{path}", timeout=20)
        answer.raise_for_status()
        return answer.json()

    return tool


# -- tools: timeout


@fault("tool", "timeout", "2")
def _(server: ScriptedServer) -> None:
    slow = fetch(server, Reply(before=Gate()), timeout=0.05)
    Agent(server).work(LOOK_UP, "The shop does not answer.", look_up=slow)


@fault("tool", "timeout", "2.1")
def _(server: ScriptedServer) -> None:
    agent = Agent(server, "messages", handled="json")
    first = [("convert", {"amount": 3})]
    slow = raising(TimeoutError("no answer of the shop"))
    agent.work(first, LOOK_UP, "Later.", convert="3 EUR", look_up=slow)


@fault("tool", "timeout", "2")
def _(server: ScriptedServer) -> None:
    late = request(server, json_reply({"message": "upstream"}, 504))
    Agent(server, "messages-stream", handled="flag").work(LOOK_UP, "Later.", look_up=late)


@fault("tool", "timeout", "2")
def _(server: ScriptedServer) -> None:
    @playhead.tool
    def run_tests() -> None:
        subprocess.run([sys.executable, "-c", "input()"], timeout=0.01, stdin=subprocess.PIPE)

    Agent(server, "chat-stream", handled="raise").work(
        [("run_tests", {})], run_tests=playhead.tool(run_tests)
    )


@fault("tool", "timeout", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"status": "timeout", "message": "the warehouse did not answer in 30 s"}
    Agent(server, "responses").work(LOOK_UP, "Later.", look_up=said)


# -- tools: invalid_response


@fault("tool", "invalid_response", "2")
def _(server: ScriptedServer) -> None:
    page = fetch(server, Reply([b"<html>Welcome</html>"], headers=[("content-type", "text/html")]))
    Agent(server).work(LOOK_UP, "I cannot read it.", look_up=page)


@fault("tool", "invalid_response", "2")
def _(server: ScriptedServer) -> None:
    class Order(pydantic.BaseModel):
        id: int

    @playhead.tool
    def look_up(order: int) -> int:
        return Order.model_validate({"number": order}).id

    Agent(server, "messages", handled="flag").work(LOOK_UP, "Odd.", look_up=look_up)


@fault("tool", "invalid_response", "2")
def _(server: ScriptedServer) -> None:
    packed = fetch(server, json_reply({"at": "Oslo"}, headers={"content-encoding": "gzip"}))
    Agent(server, "responses-stream").work(LOOK_UP, "Odd.", look_up=packed)


@fault("tool", "invalid_response", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"error": "unexpected response of the inventory: <html><h1>It works!</h1>"}
    Agent(server, "chat-async").work(LOOK_UP, "Odd.", look_up=said)


@fault("tool", "invalid_response", "2")
def _(server: ScriptedServer) -> None:
    half = fetch(server, Reply([b'{"order": 81'], headers=[("content-type", "application/json")]))
    Agent(server, handled="raise").work(LOOK_UP, look_up=half)


# -- tools: connection_error


@fault("tool", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    url = f"http://127.0.0.1:{closed()}/orders"
    Agent(server, "messages").work(LOOK_UP, "Down.", look_up=lambda **_: get(url))


@fault("tool", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    cut = request(server, json_reply({"a": "b" * 100}, truncate_at=20, framing="chunked"))
    Agent(server, handled="json").work(LOOK_UP, "Down.", look_up=cut)


@fault("tool", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    async def call() -> Any:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{closed()}/orders") as answer:
                return await answer.json()

    Agent(server, "responses", handled="raise").work(LOOK_UP, look_up=lambda **_: asyncio.run(call()))


@fault("tool", "connection_error", "1.1")
def _(server: ScriptedServer) -> None:
    reset = raising(ConnectionResetError(104, "Connection reset by peer"))
    Agent(server, "messages-stream", handled="flag").work(LOOK_UP, "Down.", look_up=reset)


@fault("tool", "connection_error", "2.1")
def _(server: ScriptedServer) -> None:
    said = "Error: [Errno -2] Name or service not known"
    Agent(server, "chat-stream").work([("today", {})], LOOK_UP, "Down.", today="Monday", look_up=said)


# -- tools: api_error


@fault("tool", "api_error", "2")
def _(server: ScriptedServer) -> None:
    broken = fetch(server, json_reply({"message": "oops"}, 500))
    Agent(server, "responses").work(LOOK_UP, "Broken.", look_up=broken)


@fault("tool", "api_error", "4")
def _(server: ScriptedServer) -> None:
    busy = request(server, Reply([b"Service Unavailable"], 503))
    good = fetch(server, json_reply({"eur": 7}), "/price")
    Agent(server, "messages", handled="flag").work(
        [("price", {"order": 8127})], LOOK_UP, "Broken.", price=good, look_up=busy
    )


@fault("tool", "api_error", "2")
def _(server: ScriptedServer) -> None:
    said = {"error": {"code": "INTERNAL", "message": "the database is locked"}}
    Agent(server).work(LOOK_UP, "Broken.", look_up=fetch(server, json_reply(said)))


@fault("tool", "api_error", "2")
def _(server: ScriptedServer) -> None:
    from langchain_core.tools import tool

    @tool
    def look_up(order: int) -> str:
        """Look up an order."""
        raise ValueError(f"order {order} is archived")

    def call(**given: Any) -> Any:
        return look_up.invoke(given)

    Agent(server, "chat-stream").work(LOOK_UP, "Broken.", look_up=call)


@fault("tool", "api_error", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"success": False, "message": "the order service rejected the request"}
    Agent(server, "messages-async").work(LOOK_UP, "Broken.", look_up=said)


# -- tools: auth_error


@fault("tool", "auth_error", "2")
def _(server: ScriptedServer) -> None:
    denied = fetch(server, json_reply({"detail": "no token"}, 401))
    Agent(server, "chat-async").work(LOOK_UP, "I may not.", look_up=denied)


@fault("tool", "auth_error", "2")
def _(server: ScriptedServer) -> None:
    denied = request(server, Reply([b"no"], 403))
    Agent(server, handled="raise").work(LOOK_UP, look_up=denied)


@fault("tool", "auth_error", "1.1")
def _(server: ScriptedServer) -> None:
    denied = raising(PermissionError(13, "Permission denied: '/srv/orders'"))
    Agent(server, "responses-stream", handled="json").work(LOOK_UP, "I may not.", look_up=denied)


@fault("tool", "auth_error", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"error": "invalid_token", "error_description": "The access token expired"}
    Agent(server, "messages").work(LOOK_UP, "I may not.", look_up=said)


@fault("tool", "auth_error", "2")
def _(server: ScriptedServer) -> None:
    class LoginFailed(Exception):
        pass

    tool = marked("look_up", LoginFailed("API key is not valid. Please pass a valid API key."))
    Agent(server, "chat").work(LOOK_UP, "I may not.", look_up=tool)


# -- retrieval: no_results


@fault("retrieval", "no_results", "1.1")
def _(server: ScriptedServer) -> None:
    Agent(server, "chat-stream").work(SEARCH, "I do not know.", search_docs=[])


@fault("retrieval", "no_results", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"matches": [], "namespace": "policies", "usage": {"read_units": 5}}
    Agent(server, "messages").work(
        [("retrieveContext", {"q": "refund"})], "I do not know.", retrieveContext=said
    )


@fault("retrieval", "no_results", "2")
def _(server: ScriptedServer) -> None:
    path = "/collections/docs/points/search"
    server.on(path, json_reply({"result": [], "status": "ok", "time": 0.001}))

    def look(question: str) -> Any:
        url = f"{server.url}{path}"
        return httpx.post(url, json={"vector": [0.1, 0.2], "limit": 3}).json()["result"]

    agent = Agent(server, "responses")
    agent.work("Let me see.", question="What is the policy?")
    found = look("policy")
    agent.work("I do not know.", question=f"Answer from {found}")


@fault("retrieval", "no_results", "1.1")
def _(server: ScriptedServer) -> None:
    said = "No relevant documents were found for 'refund policy'."
    Agent(server, "responses-stream").work(
        [("knowledge_base", {"query": "refund policy"})], "I do not know.", knowledge_base=said
    )


@fault("retrieval", "no_results", "1")
def _(server: ScriptedServer) -> None:
    retriever(lambda _: []).invoke("refund policy")
    Agent(server).work("I do not know.")


def retriever(find: Callable[[str], Any]) -> Any:
    """A retriever of LangChain."""
    from langchain_core.retrievers import BaseRetriever

    class Docs(BaseRetriever):
        def _get_relevant_documents(self, query: str, **_: Any) -> Any:
            return find(query)

    return Docs()


# -- retrieval: connection_error and timeout


@fault("retrieval", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    url = f"http://127.0.0.1:{closed()}/search"
    Agent(server).work(SEARCH, "Down.", search_docs=lambda query: get(url, params={"q": query}))


@fault("retrieval", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    server.on("/indexes/docs/query", hang_up())
    agent = Agent(server, "messages")
    agent.work("Let me see.")
    try:
        httpx.post(f"{server.url}/indexes/docs/query", json={"vector": [0.1]})
    except httpx.TransportError:
        agent.work("The index is down.")


@fault("retrieval", "connection_error", "2")
def _(server: ScriptedServer) -> None:
    tool = marked("vector_search", ConnectionRefusedError(111, "Connection refused"))
    Agent(server, "chat-stream").work([("vector_search", {"q": "x"})], "Down.", vector_search=tool)


@fault("retrieval", "connection_error", "1.1")
def _(server: ScriptedServer) -> None:
    said = {"error": "ServiceUnavailable: Unable to establish connection to neo4j:7687"}
    Agent(server, "responses").work([("lookup_knowledge", {"q": "x"})], "Down.", lookup_knowledge=said)


@fault("retrieval", "connection_error", "1")
def _(server: ScriptedServer) -> None:
    def find(_: str) -> Any:
        raise ConnectionError("could not connect to the vector store at 10.0.0.7:6333")

    retriever(find).invoke("refund policy")


@fault("retrieval", "timeout", "2")
def _(server: ScriptedServer) -> None:
    slow = fetch(server, Reply(before=Gate()), "/search", timeout=0.05)
    Agent(server, "responses", handled="json").work(SEARCH, "Later.", search_docs=slow)


@fault("retrieval", "timeout", "1.1")
def _(server: ScriptedServer) -> None:
    said = "Error: Search timed out after 10 seconds"
    Agent(server, "messages-stream").work([("webSearch", {"q": "x"})], "Later.", webSearch=said)


@fault("retrieval", "timeout", "2")
def _(server: ScriptedServer) -> None:
    tool = marked("semantic_search", TimeoutError("deadline exceeded"))
    Agent(server, "chat", handled="raise").work([("semantic_search", {})], semantic_search=tool)


@fault("retrieval", "timeout", "2")
def _(server: ScriptedServer) -> None:
    late = request(server, json_reply({"error": "search phase"}, 504), "/docs/_search")
    Agent(server, "messages").work(SEARCH, "Later.", search_docs=late)


@fault("retrieval", "timeout", "1")
def _(server: ScriptedServer) -> None:
    def find(_: str) -> Any:
        raise httpx.ReadTimeout("The read operation timed out")

    try:
        retriever(find).invoke("refund policy")
    except httpx.ReadTimeout:
        Agent(server).work("Later.")


# -- retrieval: invalid_query


@fault("retrieval", "invalid_query", "2")
def _(server: ScriptedServer) -> None:
    said = {"error": {"type": "parsing_exception", "reason": "unknown query [mtch]"}}
    wrong = request(server, json_reply(said, 400), "/docs/_search")
    Agent(server, handled="json").work(SEARCH, "Odd.", search_docs=wrong)


@fault("retrieval", "invalid_query", "1.1")
def _(server: ScriptedServer) -> None:
    def query_orders(sql: str) -> Any:
        return sqlite3.connect(":memory:").execute(sql).fetchall()

    Agent(server, "messages").work(
        [("query_orders", {"sql": "SELEC * FROM orders"})], "Odd.", query_orders=query_orders
    )


@fault("retrieval", "invalid_query", "1.1")
def _(server: ScriptedServer) -> None:
    said = "Error: Invalid filter expression: unexpected token '&&' at position 14"
    Agent(server, "responses-stream").work(
        [("search_products", {"filter": "a && b"})], "Odd.", search_products=said
    )


@fault("retrieval", "invalid_query", "1")
def _(server: ScriptedServer) -> None:
    def find(query: str) -> Any:
        raise ValueError(f"malformed query: unbalanced quotes in {query!r}")

    retriever(find).invoke('"refund')


@fault("retrieval", "invalid_query", "2")
def _(server: ScriptedServer) -> None:
    tool = marked("search_docs", ValueError(json.dumps({"code": 422, "detail": "query is empty"})))
    Agent(server, "chat-async").work(SEARCH, "Odd.", search_docs=tool)
