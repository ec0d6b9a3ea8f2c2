"""Two hundred values in ten kinds of sources: `playhead blame` leads each of them to its source."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.home import Home

KINDS = (
    "argument",
    "environment",
    "input",
    "file",
    "database",
    "response",
    "result",
    "system",
    "message",
    "answer",
)
SPELLINGS: list[tuple[Callable[[int], str], Callable[[int], Any]]] = [
    (lambda n: f"mia.{n}@shop.example", lambda n: f"mia.{n}@shop.example"),
    (lambda n: f"DE{n} 3704 0044 0532 0130 00", lambda n: f"DE{n}370400440532013000"),
    (lambda n: f"{n},234.50 EUR", lambda n: float(f"{n}234.5")),
    (lambda n: f"order {n}81234 today", lambda n: int(f"{n}81234")),
    (lambda n: f"Café Østerbro {n}", lambda n: f"Café Østerbro {n}"),
    (lambda n: f"STRASSE {n}b", lambda n: f"straße {n}b"),
    (
        lambda n: f"3f2504e0-4f89-11d3-9a0c-0305e82{n}",
        lambda n: f"3f2504e0-4f89-11d3-9a0c-0305e82{n}",
    ),
    (lambda n: f"+49 170 {n} 45-67", lambda n: f"+49170{n}4567"),
    (lambda n: f"Invoice number {n}-A", lambda n: f"invoice_number_{n}_a"),
    (lambda n: f"/srv/reports/q{n}.pdf", lambda n: f"/srv/reports/q{n}.pdf"),
    (lambda n: f"https://x.example/a?b={n}&c=d%20e", lambda n: f"https://x.example/a?b={n}&c=d e"),
    (lambda n: f"Tom &amp; Jerry {n}", lambda n: f"Tom & Jerry {n}"),
    (lambda n: "code " + "".join(chr(0xFF10 + int(one)) for one in str(n)) + "X7", lambda n: f"{n}X7"),
    (lambda n: f'he said "yes {n}" twice', lambda n: f'he said "yes {n}" twice'),
    (lambda n: rf"C:\Users\{n}\plan.txt", lambda n: rf"C:\Users\{n}\plan.txt"),
    (lambda n: f"SKU-{n}/BLUE", lambda n: f"sku {n} blue"),
    (lambda n: f"Anna\u00a0Maria {n}", lambda n: f"Anna Maria {n}"),
    (lambda n: f"due 2026-11-{n % 28 + 1:02}T{n}", lambda n: f"2026-11-{n % 28 + 1:02}T{n}"),
    (lambda n: f"sha256:9f86d081884c7d65{n}", lambda n: f"9f86d081884c7d65{n}"),
    (lambda n: f"total {n}'000'000.00 CHF", lambda n: int(f"{n}000000")),
]
"""How a value stands in its source, and how the model writes it later."""
AGENT = """
import json, os, sqlite3, sys, urllib.request
import openai

read = [
    open("facts.txt").read(),
    json.dumps(sqlite3.connect("facts.db").execute("select * from facts").fetchall()),
    sys.stdin.read(),
    urllib.request.urlopen(os.environ["PAGE"]).read().decode(),
    sys.argv[1],
    os.environ["PYTHONFACTS"],
]
client = openai.OpenAI(max_retries=0)
history = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": MESSAGE},
]
for _turn in range(2):
    message = client.chat.completions.create(model="gpt-4o", messages=history).choices[0].message
    history.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = RESULT if call.function.name == "look_up" else "sent"
        history.append({"role": "tool", "tool_call_id": call.id, "content": result})
"""


def number_of(kind: str, spelling: int) -> int:
    return 110 + 20 * KINDS.index(kind) + spelling


def planted(kind: str) -> list[str]:
    return [write(number_of(kind, at)) for at, (write, _) in enumerate(SPELLINGS)]


def wanted(kind: str) -> dict[str, Any]:
    return {f"v{at}": use(number_of(kind, at)) for at, (_, use) in enumerate(SPELLINGS)}


def answer(request: Request) -> Reply:
    """Look up first, with what the answer says; then use the values of each kind in a call."""
    if request.json["messages"][-1]["role"] == "user":
        call = openai_chat.tool_call("c0", "look_up", {"order": 1})
        return json_reply(openai_chat.completion("; ".join(planted("answer")), tool_calls=[call]))
    never = {"a": "never@seen.example", "b": 998877, "c": "NL99 0000 1111 2222"}
    calls = [openai_chat.tool_call(kind, f"send_{kind}", wanted(kind)) for kind in KINDS]
    calls.append(openai_chat.tool_call("never", "send_never", never))
    return json_reply(openai_chat.completion(tool_calls=calls))


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_two_hundred_planted_values_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    names = {"SYSTEM": "system", "MESSAGE": "message", "RESULT": "result"}
    agent = AGENT
    for name, kind in names.items():
        agent = agent.replace(name, repr("; ".join(planted(kind))))
    (tmp_path / "agent.py").write_text(agent, "utf-8")
    (tmp_path / "facts.txt").write_text("\n".join(planted("file")), "utf-8")
    with closing(sqlite3.connect(tmp_path / "facts.db")) as base:
        base.execute("create table facts(id integer, fact text)")
        base.executemany("insert into facts values (?, ?)", enumerate(planted("database")))
        base.commit()
    with ScriptedServer() as server:
        server.on("/page", json_reply({"facts": planted("response")}))
        server.on("/v1/chat/completions", answer, repeat=True)
        environ = {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "k",
            "PAGE": f"{server.url}/page",
            "PYTHONFACTS": "; ".join(planted("environment")),
        }
        home = Home(tmp_path, environ)
        done = home.playhead(
            "record", "agent.py", "; ".join(planted("argument")), input="\n".join(planted("input"))
        )
        assert done.returncode == 0, done.stderr
    blamed = json.loads(home.playhead("blame", "last:3", "--json").stdout)["calls"]
    wrong: list[str] = []
    for call in blamed:
        kind = call["name"].removeprefix("send_")
        for value in call["values"]:
            found = value["origins"][0]["kind"] if value["origins"] else None
            if not value["is_part"] and found != (None if kind == "never" else kind):
                wrong.append(f"{kind} {value['value']!r}: {found}")
    with capsys.disabled():
        print(f"\n{200 - len(wrong)} of 200 planted values are found", *wrong, sep="\n")
    assert sum(len(call["values"]) for call in blamed) >= 203 and not wrong
