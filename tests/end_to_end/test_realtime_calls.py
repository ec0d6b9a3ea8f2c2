"""An agent that talks to a model over a WebSocket, with the SDK of OpenAI: its answers are calls."""

import json
from pathlib import Path

from support.home import Home
from support.websocket_server import WebSocketServer

AGENT = """
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


def test_answers_of_a_session_are_calls(tmp_path: Path):
    home = Home(tmp_path, {})
    agent = tmp_path / "talks.py"
    agent.write_text(AGENT)
    with WebSocketServer() as server:
        done = home.playhead("record", agent, server.url("/v1"))
    assert done.returncode == 0, done.stderr
    assert "It is sunny" in done.stdout
    shown = home.playhead("show", "last").stdout
    assert shown.count("chat gpt-realtime") == 2
    assert json.loads(home.playhead("rederive", "--json").stdout)["runs"] == 1
    (run,) = json.loads(home.playhead("ls", "--json").stdout)["runs"]
    assert (run["steps"], run["input_tokens"], run["output_tokens"]) == (3, 60, 18)
    said = home.playhead("show", "last:3").stdout
    assert "sunny" in said
    status, report = home.report("last")
    assert (status, report["verdict"], report["divergences"]) == (0, "identical", [])
