"""Plain functions that a model calls as tools are shown as steps, through a real SDK."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.servers.scripted import (
    Request,
    ScriptedServer,
    chat_sse,
    json_reply,
    openai_chat,
)
from support.starting.home import Home

AGENT = """
import json, os, sys, httpx
from openai import OpenAI

client, tries = OpenAI(), []

def price(item):
    tries.append(item)
    if len(tries) == 2:
        raise LookupError(f"no {item}")
    return "49"

def stock(item):
    return httpx.get(os.environ["SHOP"] + "/stock/" + item).text

def plain():
    return client.chat.completions.create(model="gpt-5.5", messages=messages)

def streamed():
    with client.chat.completions.stream(model="gpt-5.5", messages=messages) as events:
        return events.get_final_completion()

ask = {"plain": plain, "streamed": streamed}[sys.argv[1]]
messages = [{"role": "user", "content": "kettle"}]
while True:
    answer = ask().choices[0].message
    if not answer.tool_calls:
        break
    messages.append(answer.to_dict())
    for call in answer.tool_calls:
        try:
            result = globals()[call.function.name](**json.loads(call.function.arguments))
        except LookupError as problem:
            result = f"Error: {problem}"
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(answer.content)
"""

ASKED = [
    [openai_chat.tool_call("c1", "price", {"item": "kettle"})],
    [
        openai_chat.tool_call("c2", "price", {"item": "pot"}),
        openai_chat.tool_call("c3", "stock", {"item": "pan"}),
    ],
    [openai_chat.tool_call("c4", "price", {"item": "pot"})],
]


def answered(request: Request):
    said = sum(message["role"] == "assistant" for message in request.json["messages"])
    if said < len(ASKED):
        whole = openai_chat.completion(tool_calls=ASKED[said], finish_reason="tool_calls")
    else:
        whole = openai_chat.completion("It costs 49.")
    return chat_sse(whole) if request.json.get("stream") else json_reply(whole)


@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_each_call_is_one_step(tmp_path: Path, how: str):
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        provider.on("/stock/pan", json_reply({"left": 7}))
        home = Home(
            tmp_path,
            {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k", "SHOP": provider.url},
        )
        (tmp_path / "agent.py").write_text(AGENT)
        done = home.playhead("record", "agent.py", how)
        assert (done.returncode, done.stdout) == (0, "It costs 49.\n"), done.stderr

    shown = home.playhead("show", "last").stdout
    rows = [line.split() for line in shown.splitlines()]
    numbered = [(row[0], *row[2:5]) for row in rows if row and row[0][0].isdigit()]
    assert numbered == [
        ("1", "chat", "gpt-5.5", "12→5"),
        ("1.1", "execute_tool", "price", '"kettle"'),
        ("2", "chat", "gpt-5.5", "12→5"),
        ("3", "GET", "/stock/pan", "2.2"),
        ("4", "chat", "gpt-5.5", "12→5"),
        ("4.1", "execute_tool", "price", '"pot"'),
        ("5", "chat", "gpt-5.5", "12→5"),
    ]
    assert "✗ 2.1" in shown and "Error: no pot" in shown and "attempt 2" in shown

    found = json.loads(home.playhead("show", "last", "--json").stdout)["tool_calls"]
    names = ("number", "name", "arguments", "result", "error", "attempt", "derived")
    assert [tuple(one[name] for name in names) for one in found] == [
        ("1.1", "price", {"item": "kettle"}, "49", None, 1, True),
        ("2.1", "price", {"item": "pot"}, "Error: no pot", "Error: no pot", 1, True),
        ("2.2", "stock", {"item": "pan"}, '{"left":7}', None, 1, False),
        ("4.1", "price", {"item": "pot"}, "49", None, 2, True),
    ]
    one = home.playhead("show", "last:2.1")
    assert "Error: no pot" in one.stdout and "derived from the messages after step 2" in one.stdout
    linked = home.playhead("show", "last:2.2", "--json")
    assert json.loads(linked.stdout)["number"] == 3
    missing = home.playhead("show", "last:9.1")
    assert missing.returncode == 2 and "no tool call 9.1" in missing.stderr


def test_without_content_no_call_is_shown(tmp_path: Path):
    with ScriptedServer() as provider:
        provider.on("/v1/chat/completions", answered, repeat=True)
        provider.on("/stock/pan", json_reply({"left": 7}))
        home = Home(
            tmp_path,
            {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "k", "SHOP": provider.url},
        )
        (tmp_path / "agent.py").write_text(AGENT)
        done = home.playhead("record", "--content", "metadata", "agent.py", "plain")
        assert done.returncode == 0, done.stderr
    assert json.loads(home.playhead("show", "last", "--json").stdout)["tool_calls"] == []
