"""Agents that talk to a model over a WebSocket, with its SDK: its answers are calls."""

import json
from pathlib import Path

import pytest
from support.home import Home
from support.sdk_table import APART
from support.tls import IDENTITY
from support.websocket_server import WebSocketServer

REALTIME = """
import os, sys
import openai

client = openai.OpenAI(api_key="sk-test", websocket_base_url=sys.argv[1])
with client.realtime.connect(model="gpt-realtime") as session:
    assert session.recv().type == "session.created"
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    session.session.update(session={"type": "realtime", "instructions": "Be brief.", "tools": [tool]})
    assert session.recv().type == "session.updated"
    text = [{"type": "input_text", "text": "How is it?"}]
    asked = {"type": "message", "role": "user", "content": text}
    for item in (asked, {"type": "function_call_output", "call_id": "c1", "output": "sunny"}):
        session.conversation.item.create(item=item)
        session.response.create()
        while (event := session.recv()).type != "response.done":
            pass
    print(event.response.output[0].content[0].text)
"""


LIVE = """
import asyncio, sys
from google import genai
from google.genai import types


async def main():
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=sys.argv[1]))
    tool = {"function_declarations": [{"name": "weather", "description": "Weather of a city"}]}
    config = {"response_modalities": ["TEXT"], "system_instruction": "Be brief.", "tools": [tool]}
    async with client.aio.live.connect(model="gemini-live", config=config) as session:
        question = types.Content(role="user", parts=[types.Part(text="How is it?")])
        await session.send_client_content(turns=question, turn_complete=True)
        async for message in session.receive():
            if message.tool_call:
                (call,) = message.tool_call.function_calls
                result = types.FunctionResponse(id=call.id, name=call.name, response={"sky": "sunny"})
                await session.send_tool_response(function_responses=[result])
                break
        said = [message.text or "" async for message in session.receive()]
        print("".join(said))


asyncio.run(main())
"""
PROGRAMS = {
    "realtime": (REALTIME, "/v1", "chat gpt-realtime"),
    "live": (LIVE, "", "generate_content gemini-live"),
}


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("realtime", "strict"),
        pytest.param("realtime", "exchanges", marks=pytest.mark.acceptance),
        pytest.param("live", "strict", marks=pytest.mark.acceptance),
        ("live", "exchanges"),
    ],
)
def test_answers_of_a_session_are_calls(tmp_path: Path, name: str, level: str):
    program, path, called = PROGRAMS[name]
    identity = tmp_path / "identity.pem"
    identity.write_text(IDENTITY)
    home = Home(tmp_path, {})
    for environ in (home.environ, home.bare):
        environ |= {"PYTHONPATH": str(APART), "SSL_CERT_FILE": str(identity)}
    agent = tmp_path / "talks.py"
    agent.write_text(program)
    with WebSocketServer(str(identity) if name == "live" else "") as server:
        done = home.playhead("record", "--level", level, agent, server.url(path))
    assert done.returncode == 0, done.stderr
    assert "It is sunny" in done.stdout
    shown = home.playhead("show", "last").stdout
    assert shown.count(called) == 2
    assert json.loads(home.playhead("rederive", "--json").stdout)["runs"] == 1
    (run,) = json.loads(home.playhead("ls", "--json").stdout)["runs"]
    assert (run["steps"], run["input_tokens"], run["output_tokens"]) == (3, 60, 18)
    said = home.playhead("show", "last:3").stdout
    assert "sunny" in said
    status, report = home.report("last")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
