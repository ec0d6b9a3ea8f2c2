"""`playhead blame` names the source of each argument of a tool call."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.observed.asking import ASKING
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

AGENT = f"""
import json, os, sqlite3, sys, urllib.request
{ASKING}
told = " ".join([
    open("note.txt").read(),
    sqlite3.connect("orders.db").execute("select mail from orders where id = 81").fetchone()[0],
    sys.stdin.readline(),
    urllib.request.urlopen(os.environ["PAGE"]).read().decode(),
    sys.argv[1],
])
history = [
    {{"role": "system", "content": "All goes to desk@corp.example."}},
    {{"role": "user", "content": told}},
]
history.append(answered(messages=history))
result = json.dumps({{"account": "DE89 3704 0044 0532 0130 00", "price": "1,234.50"}})
history.append({{"role": "tool", "tool_call_id": "c1", "content": result}})
answered(messages=history)
"""
SENT = {
    "note": "bert@note.example",
    "row": "row@sql.example",
    "line": "line@in.example",
    "page": "page@http.example",
    "word": "word@argv.example",
    "desk": "desk@corp.example",
    "idea": "idea@model.example",
    "account": {"iban": "DE89370400440532013000"},
    "prices": [1234.5],
    "new": "never@seen.example",
    "text": "Order 81 is for nobody, write to bert@note.example.",
}
FOUND = {
    "note": ("file", "./note.txt", True),
    "row": ("database", "./orders.db", True),
    "line": ("input", "", True),
    "page": ("response", "GET {page}", True),
    "word": ("argument", "", True),
    "desk": ("system", "", True),
    "idea": ("answer", "", True),
    "account.iban": ("result", "lookup", False),
    "prices.0": ("result", "lookup", False),
    "new": None,
    "text": None,
    "text: bert@note.example": ("file", "./note.txt", True),
}


def answer(request: Request) -> Reply:
    asked: list[dict[str, Any]] = json.loads(request.body)["messages"]
    is_first = asked[-1]["role"] == "user"
    name, arguments = ("lookup", {"order": 81}) if is_first else ("send", SENT)
    function = {"name": name, "arguments": json.dumps(arguments)}
    calls = [{"id": "c1" if is_first else "c2", "type": "function", "function": function}]
    return json_reply(openai_chat.completion("Maybe idea@model.example?", tool_calls=calls))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("blame")
    (folder / "agent.py").write_text(AGENT)
    (folder / "note.txt").write_text("Ask bert@note.example first.")
    with closing(sqlite3.connect(folder / "orders.db")) as base:
        base.execute("create table orders(id integer, mail text)")
        base.execute("insert into orders values (81, 'row@sql.example')")
        base.commit()
    with ScriptedServer() as server:
        server.on("/page", json_reply({"contact": "page@http.example"}), repeat=True)
        server.on(lambda _: True, answer, repeat=True)
        page = f"{server.url}/page"
        home = Home(folder, {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "k", "PAGE": page})
        words = "record", "agent.py", "word@argv.example"
        for _ in range(2):
            done = home.playhead(*words, input="line@in.example\n")
            assert done.returncode == 0, done.stderr
    (folder / "page").write_text(page)
    return home


def test_each_argument_leads_to_the_first_that_held_it(home: Home) -> None:
    [call] = json.loads(home.playhead("blame", "last:3.1", "--json").stdout)["calls"]
    found = {
        f"{one['path']}: {one['value']}" if one["is_part"] else one["path"]: one["origins"]
        for one in call["values"]
    }
    firsts = {
        path: (origins[0]["kind"], origins[0]["name"], origins[0]["exact"]) if origins else None
        for path, origins in found.items()
    }
    page = Path(home.folder / "page").read_text()
    assert call["name"] == "send"
    assert firsts == FOUND | {"page": ("response", f"GET {page}", True)}
    assert [one["kind"] for one in found["note"]] == ["file", "message"]


def test_one_argument_and_a_text_are_printed(home: Home) -> None:
    printed = home.playhead("blame", "last:3", "account").stdout
    assert "account.iban  DE89370400440532013000" in printed
    assert "the result of lookup at step 2.1  in another spelling" in printed
    assert "standard input" in home.playhead("blame", "last:2", "--value", "line@in.example").stdout
    [other] = json.loads(home.playhead("blame", "last:3", "note", "--runs", "--json").stdout)["calls"]
    assert other["values"][0]["runs"] == ["agent-1"]
    assert "also in agent-1" in home.playhead("blame", "last:3", "note", "--runs").stdout
    refused = home.playhead("blame", "last:3", "account.bic")
    assert refused.returncode == 2
    assert "has no argument account.bic" in refused.stderr


def test_the_api_answers_the_same(home: Home) -> None:
    printed = json.loads(home.playhead("blame", "last:3", "note", "--runs", "--json").stdout)
    with Receiver(home.data_dir, Configuration(Addresses(0, None, 0))) as receiver:
        url = f"{receiver.query_endpoint}/v1/runs/last/steps"
        wanted = {"argument": "note", "runs": "true"}
        assert httpx.get(f"{url}/3/blame", params=wanted).json() == printed
        assert httpx.get(f"{url}/99/blame").status_code == 404
        assert httpx.get(f"{url}/3/blame", params={"argument": "account.bic"}).status_code == 422
