"""Runs that look like failures and are none: retries, polls, empty results, the word "error"."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
from support.failing.agents import Agent, get
from support.failing.tool_faults import ORDER, retriever
from support.servers.scripted import (
    Gate,
    Reply,
    ScriptedServer,
    anthropic_messages,
    hang_up,
    json_reply,
    openai_chat,
    openai_embeddings,
    openai_error,
    sse,
    sse_reply,
)

import playhead

Good = Callable[[ScriptedServer, random.Random], object]
GOOD: list[Good] = []
SDKS = [
    "chat",
    "chat-stream",
    "chat-async",
    "responses",
    "responses-stream",
    "messages",
    "messages-stream",
    "messages-async",
]
WORDS = "refund invoice delivery address warehouse price customer".split()


def good(program: Good) -> Good:
    GOOD.append(program)
    return program


def agent_of(server: ScriptedServer, chosen: random.Random, **fields: Any) -> Agent:
    return Agent(server, chosen.choice(SDKS), **fields)


def answers(name: str, *results: Any) -> Good:
    """An agent that calls a tool once for each of these results; all of them are right."""

    def program(server: ScriptedServer, chosen: random.Random) -> None:
        agent, left = agent_of(server, chosen), iter(results)
        calls = [[(name, {"id": number})] for number, _ in enumerate(results)]
        said = f"Here is the {chosen.choice(WORDS)}."
        agent.work(*calls, said, **{name: lambda **_: next(left)})

    return program


GOOD += [
    # empty and right
    answers("list_open_tickets", []),
    answers("check_conflicts", {"conflicts": []}),
    answers("get_unread_messages", {"messages": [], "count": 0}),
    answers("search_docs", [], {"docs": ["Refunds take 5 days."]}),
    answers("delete_order", ""),
    answers("lint", {"errors": [], "warnings": []}),
    # the word "error"
    answers("read_log", "ERROR 2026-11-29 disk full\nINFO started"),
    answers("get_logs", "Error: connection refused by 10.0.0.7"),
    answers("explain_error", {"error": "E42", "meaning": "the disk is full"}),
    answers("list_errors", {"errors": [{"message": "disk full", "count": 3}], "total": 1}),
    answers("fit_curve", {"error": 0.0132, "slope": 2.1}),
    answers("get_order", {"error": None, "order": 81, "errors": []}),
    answers("run_tests", "2 failed, 10 passed: TestOrder raised TimeoutError"),
    answers("search_docs", "Error handling: raise OrderError if the order times out."),
    answers("count_errors", "0 errors, 0 timeouts"),
    answers("translate", "Fehler: die Verbindung wurde abgelehnt (connection refused)"),
    answers("read_page", "Error codes of the API\n401 Unauthorized: the key is wrong\n429: rate limit"),
    answers("summarize", {"summary": "The incident was a timeout error.", "status": "ok"}),
    # no, and waiting
    answers("check_stock", {"success": False, "reason": "out of stock"}),
    answers("is_eligible", {"ok": False, "message": "bought 40 days ago"}),
    answers("get_job", {"state": "pending"}, {"state": "pending"}, {"state": "done", "rows": 7}),
    answers("build_status", {"status": "failed", "build": 7, "reason": "tests failed"}),
    answers("get_invoice", {"status": 404000, "id": 7, "amount": 500}),
    answers("look_up", "Order 404 is not shipped yet; 500 points were added."),
]


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The SDK tries again."""
    wire = chosen.choice(["chat", "messages"])
    agent = Agent(server, wire, retries=3)
    status = chosen.choice([429, 500, 503])
    busy = json_reply({"error": {"message": "busy"}}, status, {"retry-after-ms": "1"})
    agent.work(busy, busy, agent.reply("fine"))


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The tool tries again."""
    server.on("/orders", Reply(status=503), hang_up(), json_reply({"at": "Oslo"}))

    def look_up(**_: Any) -> Any:
        for _attempt in range(3):
            try:
                return get(f"{server.url}/orders")
            except httpx.HTTPError:
                continue

    agent_of(server, chosen).work([("look_up", {"id": 1})], "In Oslo.", look_up=look_up)


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The model calls the tool again after an error."""
    results = iter([{"error": "timeout"}, "on its way"])
    call = [("look_up", {"id": 1})]
    agent_of(server, chosen).work(call, call, "Soon.", look_up=lambda **_: next(results))


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The model corrects its arguments, and the name of a tool."""
    agent = agent_of(server, chosen, schemas={"look_up": ORDER, "pay": ORDER})
    wrong = chosen.choice([("look_up", {"order": "81"}), ("lookup", {"order": 81})])
    agent.work([wrong], [("look_up", {"order": 81})], "Soon.", look_up=81)


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """Another model answers where the first one is busy."""
    server.on("/v1/chat/completions", openai_error(chosen.choice([429, 500, 503])))
    client = openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    try:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hi"}])
    except openai.APIStatusError:
        server.on("/v1/chat/completions", json_reply(openai_chat.completion("fine")))
        client.chat.completions.create(model="mini", messages=[{"role": "user", "content": "Hi"}])


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A refusal is an answer."""
    said = openai_chat.completion(refusal="I cannot help with that.")
    Agent(server).work(json_reply(said), question="How do I pick a lock?")
    agent_of(server, chosen).work("I'm sorry, I can't help with that error.")


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """One token is enough for a choice."""
    agent = Agent(server, chosen.choice(["chat", "chat-async"]), options={"max_tokens": 1})
    agent.work(agent.reply("A", finish="length"))


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A structured output that fits, also one with an error in it."""
    schema = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": schema}}
    agent = Agent(server, chosen.choice(["chat", "chat-async"]), options={"response_format": form})
    agent.work('{"error": "timeout"}')


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A file that may be missing is looked for, and written."""
    server.on("/files/a", Reply(status=404), Reply(status=201))
    server.on("/files/b", Reply(status=404))
    httpx.get(f"{server.url}/files/a")
    httpx.put(f"{server.url}/files/a", content=chosen.choice(WORDS))
    httpx.head(f"{server.url}/files/b")
    agent_of(server, chosen).work("It is written.")


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A token is renewed."""
    server.on("/orders", Reply(status=401), json_reply({"at": "Oslo"}))
    server.on("/token", json_reply({"token": "t"}))
    if httpx.get(f"{server.url}/orders").status_code == 401:
        httpx.post(f"{server.url}/token")
        httpx.get(f"{server.url}/orders")
    agent_of(server, chosen).work("In Oslo.")


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The faster of two models is taken, the other one is cancelled."""
    held = Gate()
    reply = json_reply(openai_chat.completion("fine"))
    server.on("/v1/chat/completions", reply.but(before=held), reply)

    async def work() -> None:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
        question: Any = [{"role": "user", "content": chosen.choice(WORDS)}]
        slow = asyncio.create_task(client.chat.completions.create(model="m", messages=question))
        await asyncio.to_thread(server.wait_requests, 1)
        await client.chat.completions.create(model="m", messages=question)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await client.close()

    asyncio.run(work())


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A stream is left once enough is read."""
    whole = openai_chat.completion("one two three four " * chosen.randrange(3, 20))
    server.on("/v1/chat/completions", sse_reply(sse.chat(openai_chat.chunks(whole))))
    client = openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    question: Any = [{"role": "user", "content": "count"}]
    with client.chat.completions.create(model="m", messages=question, stream=True) as stream:
        next(iter(stream))


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """Two searches, of which one finds something."""
    agent = agent_of(server, chosen)
    agent.work(
        [("search_wiki", {"q": "x"}), ("search_docs", {"q": "x"})],
        [("search_web", {"q": chosen.choice(WORDS)})],
        "Found.",
        search_wiki="No results found",
        search_docs={"results": []},
        search_web={"results": [{"title": "Refunds"}], "errors": []},
    )


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """Embeddings, a search in a database of vectors, and an answer."""
    server.on("/v1/embeddings", json_reply(openai_embeddings.embeddings([[0.1, 0.2]])))
    server.on("/collections/docs/points/search", json_reply({"result": [{"id": 7, "score": 0.9}]}))
    client = openai.OpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    client.embeddings.create(model="e", input=chosen.choice(WORDS), encoding_format="float")
    httpx.post(f"{server.url}/collections/docs/points/search", json={"vector": [0.1]}).json()
    retriever(lambda _: [_document(chosen.choice(WORDS))]).invoke("x")
    agent_of(server, chosen).work("Found.")


def _document(text: str) -> Any:
    from langchain_core.documents import Document

    return Document(text)


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """The program ends in order, by its own exit and by a person."""
    agent_of(server, chosen).work("fine")
    raise SystemExit(0)


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """A marked tool raises what the program expects, then answers."""
    tries = iter([KeyError("not in the cache"), None])

    @playhead.tool
    def cached(key: str) -> str:
        if error := next(tries):
            raise error
        return "fresh"

    for _attempt in range(2):
        try:
            cached(chosen.choice(WORDS))
        except KeyError:
            continue
    agent_of(server, chosen).work("fine")


@good
def _(server: ScriptedServer, chosen: random.Random) -> None:
    """Claude thinks, and calls two tools at once."""
    blocks = [
        anthropic_messages.thinking("An error? No."),
        anthropic_messages.tool_use("t1", "price", {"id": 1}),
        anthropic_messages.tool_use("t2", "stock", {"id": 1}),
    ]
    server.on(
        "/v1/messages",
        json_reply(anthropic_messages.message(blocks)),
        json_reply(anthropic_messages.message("7 EUR", stop_reason="stop_sequence")),
    )
    client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
    history: list[Any] = [{"role": "user", "content": chosen.choice(WORDS)}]
    said = client.messages.create(model="claude-sonnet-5", max_tokens=99, messages=history)
    history.append({"role": "assistant", "content": [one.to_dict() for one in said.content]})
    results = [
        {"type": "tool_result", "tool_use_id": id, "content": text}
        for id, text in (("t1", "7"), ("t2", "none"))
    ]
    history.append({"role": "user", "content": results})
    client.messages.create(model="claude-sonnet-5", max_tokens=99, messages=history)
