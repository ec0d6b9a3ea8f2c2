"""Agents in eight topologies are recorded by their own SDK: the graph has every edge, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from instrumentation.frameworks.conftest import APART, names
from support.observed.asking import ASKING
from support.outside.load import busy_processors
from support.servers.scripted import (
    Reply,
    Request,
    ScriptedServer,
    json_reply,
    openai_chat,
    openai_responses,
)
from support.starting.home import Home
from support.starting.services import RecordedService

FOLDER = Path(__file__).parent
SERVER = """
from mcp.server import MCPServer

tools = MCPServer("orders")

@tools.tool()
def look_up(order: int) -> str:
    "Look an order up."
    return f"order {order}"

tools.run()
"""
CHILD = """
import playhead
from asking import asked
playhead.message("starter", "result", asked("how many?"))
"""

TURNS: dict[str, list[list[str]]] = {
    "chain_1": [["transfer_to_chain_2"]],
    "chain_2": [["transfer_to_chain_3"]],
    "triage": [["transfer_to_billing"]],
    "supervisor": [["ask_worker_1"], ["ask_worker_2"], ["ask_worker_1"]],
    "lead": [["ask_search_1", "ask_search_2", "ask_search_3"]],
    "writer": [["transfer_to_critic"]],
    "critic": [["transfer_to_writer"]],
    "asker": [["ask_helper"]],
}
"""What the model of an agent calls, turn by turn; then it says who it is."""
EXPECTED = {
    *(("agent", first, "call", 1) for first in ("chain_1", "triage", "supervisor", "lead", "writer")),
    *(("agent", first, "call", 1) for first in ("asker", "starter")),
    ("chain_1", "chain_2", "handoff", 1),
    ("chain_2", "chain_3", "handoff", 1),
    ("triage", "billing", "handoff", 1),
    ("supervisor", "worker_1", "tool", 2),
    ("supervisor", "worker_2", "tool", 1),
    *(("lead", f"search_{number}", "tool", 1) for number in (1, 2, 3)),
    ("writer", "critic", "handoff", 1),
    ("critic", "writer", "handoff", 1),
    ("asker", "helper", "tool", 1),
    ("starter", "child", "process", 1),
    ("starter", "child", "message", 1),
    ("starter", "back", "http", 2),
    ("starter", "server", "process", 1),
    ("starter", "server", "mcp", 2),
    ("starter", "archive", "message", 1),
}


def answer(request: Request) -> Reply:
    """Call what the next turn of the agent calls; its instructions name it."""
    name, sent = request.json["instructions"], request.json["input"]
    called = [
        one["name"] for one in sent if isinstance(one, dict) and one.get("type") == "function_call"
    ]
    turns, done = TURNS.get(name, []), 0
    while done < len(turns) and set(turns[done]) <= set(called):
        for tool in turns[done]:
            called.remove(tool)
        done += 1
    tools = turns[done] if done < len(turns) else []
    output = [
        openai_responses.function_call(
            f"call_{name}_{done}_{tool}",
            tool,
            {} if tool.startswith("transfer") else {"input": "go"},
            id=f"fc_{name}_{done}_{tool}",
        )
        for tool in tools
    ]
    return json_reply(openai_responses.response(output or [openai_responses.message(f"I am {name}")]))


def edges(graph: dict[str, Any]) -> set[tuple[str, str, str, int]]:
    return {(one["source"], one["target"], one["channel"], one["requests"]) for one in graph["edges"]}


def recorded(folder: Path, times: int = 1) -> tuple[Home, list[dict[str, Any]]]:
    """Record the program some times; return its home and the graph of each run."""
    program = (FOLDER / "topologies_program.py").read_text("utf-8")
    back = FOLDER.parents[1] / "end_to_end" / "agents" / "back_service.py"
    files = {"agent.py": program, "child.py": CHILD, "server.py": SERVER, "asking.py": ASKING}
    for name, text in {**files, "back.py": back.read_text("utf-8")}.items():
        (folder / name).write_text(text)
    with ScriptedServer() as models:
        models.on("/v1/responses", answer, repeat=True)
        models.on("/v1/chat/completions", json_reply(openai_chat.completion("one")), repeat=True)
        environ = {
            "OPENAI_BASE_URL": f"{models.url}/v1",
            "OPENAI_API_KEY": "k",
            "OPENAI_AGENTS_DISABLE_TRACING": "0",
            "PYTHONPATH": ":".join(map(str, APART)),
        }
        home = Home(folder, environ)
        with RecordedService(home, "-m", "uvicorn", "back:app", "--port", "0") as service:
            home.environ["BACK_URL"] = service.url
            for _ in range(times):
                done = home.playhead("record", "--level", "exchanges", "agent.py", timeout_s=600)
                assert done.returncode == 0, done.stderr
    names = [f"agent-{number}" for number in range(1, times + 1)]
    return home, [json.loads(home.playhead("agents", name, "--json").stdout) for name in names]


def test_each_topology_has_its_edges_and_no_other(tmp_path: Path):
    _, [graph] = recorded(tmp_path)
    assert edges(graph) == EXPECTED


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_twenty_recordings_under_load_have_the_same_graph_and_tree(tmp_path: Path):
    with busy_processors():
        home, graphs = recorded(tmp_path, 20)
    assert [edges(graph) == EXPECTED for graph in graphs] == [True] * 20
    trees = [names(home.run(f"agent-{number}").roots) for number in range(1, 21)]
    assert trees == trees[:1] * 20
