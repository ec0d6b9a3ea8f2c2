"""What one program does is one run: its child services with it, health checks in none."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.long import long
from support.observed.asking import ASKING
from support.starting.home import Home
from support.starting.services import RecordedService, home_with

from playhead_cli.demo.provider import Provider
from playhead_receiver.storage import Query, open_store

TOOLS = """
from mcp.server import MCPServer

tools = MCPServer("tools")

@tools.tool()
def look(q: str) -> str:
    "Look."
    return f"found {q}"

tools.run()
"""

PRICES = f"""
from fastapi import FastAPI
{ASKING}
app = FastAPI()

@app.get("/prices/{{what}}")
def price(what: str):
    return asked(what)
"""

AGENT = """
import asyncio, os, subprocess, sys
import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def looked():
    server = StdioServerParameters(command=sys.executable, args=["tools.py"], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return (await session.call_tool("look", {"q": "snow"})).content[0].text

def priced():
    words = [sys.executable, "-m", "uvicorn", "prices:app", "--port", "0"]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if "running on" in line:
            break
    said = httpx.get(line.split("running on ")[1].split()[0] + "/prices/snow", timeout=60).json()
    child.terminate()
    child.wait()
    return said

print(asyncio.run(looked()), priced())
"""


ASKS = f"""
{ASKING}
print(asked("hi"))
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def test_what_comes_to_child_services_belongs_to_the_run(tmp_path: Path, provider: Provider):
    home = Home(tmp_path, provider.environment)
    for name, text in (("tools", TOOLS), ("prices", PRICES), ("agent", AGENT)):
        (tmp_path / f"{name}.py").write_text(text)
    done = home.playhead("record", "agent.py")
    assert done.returncode == 0, done.stderr
    [run] = home.runs()
    assert (run["name"], run["status"], len(run["instances"])) == ("agent-1", "success", 3)
    spans = {span.name for span in home.run("last").spans}
    assert spans >= {"tools/call look", "GET /prices/snow", "chat gpt-5.5"}
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical"), report


def test_a_program_that_another_starts_is_found(tmp_path: Path, provider: Provider):
    home = Home(tmp_path, provider.environment)
    (tmp_path / "asks.py").write_text(ASKS)
    done = home.playhead("record", "--", "sh", "-c", f"{sys.executable} asks.py; {sys.executable} -c 1")
    assert done.returncode == 0
    assert done.stdout.startswith("A flight recorder")
    assert "nothing was recorded" not in done.stderr
    assert "playhead: asks-1 success, 1 step," in done.stderr
    done = home.playhead("record", "--", "sh", "-c", "true; true")
    assert "playhead: nothing was recorded" in done.stderr


def asked(service: RecordedService, *paths: str) -> list[int]:
    return [service.client.get(path).status_code for path in paths]


HYPERCORN = ("-m", "hypercorn", "chat_service:app", "-b", "127.0.0.1:0")
FLASK = ("-m", "flask", "--app", "shop_service", "run", "--port", "0")
CHECKS = ("/healthz", "/health/", "/ready?verbose=1", "/metrics", "/favicon.ico")


@pytest.mark.parametrize(("program", "words"), [long("chat", HYPERCORN), ("shop", FLASK)])
def test_health_checks_are_no_runs(
    tmp_path: Path, provider: Provider, program: str, words: tuple[str, ...]
):
    home = home_with(tmp_path, provider, f"{program}_service.py")
    with RecordedService(home, *words) as service:
        service.client.post("/chat", json={"text": "What do I pack?"})
        assert set(asked(service, *CHECKS)) == {404}
        assert asked(service, "/healthy", "/x/health") == [404, 404]
    runs = home.runs()
    assert [run["steps"] for run in sorted(runs, key=lambda run: run["steps"])[:2]] == [0, 0]
    keys = sorted(home.run(run["name"]).requests[0].key for run in runs)
    assert keys == ["GET /healthy", "GET /x/health", "POST /chat"]
    assert home.run("last").requests[0].key == "POST /chat"


def test_what_the_settings_exclude_is_no_run(tmp_path: Path, provider: Provider):
    home = home_with(tmp_path, provider, "chat_service.py")
    home.environ["OTEL_PYTHON_EXCLUDED_URLS"] = "/broken"
    home.environ["OTEL_PYTHON_FASTAPI_EXCLUDED_URLS"] = "guar.ed$, ^http://127.0.0.1:[0-9]+/stream"
    with RecordedService(home, *HYPERCORN) as service:
        headers = {"authorization": "Bearer the-right-one-5"}
        assert service.client.post("/guarded", headers=headers).status_code == 200
        assert service.client.post("/stream", json={"text": "?"}).status_code == 200
        asked(service, "/broken?how=so", "/health")
    keys = sorted(home.run(run["name"]).requests[0].key for run in home.runs())
    assert keys == ["GET /broken?how=so", "GET /health"]
    with closing(open_store(home.data_dir, read_only=True)) as store:
        services = [run.steps for run in store.runs(Query(mode="service"))]
    assert services and set(services) == {0}


def test_what_only_the_wire_tells_of_a_call_is_known_when_its_recording_ends(
    tmp_path: Path, provider: Provider
):
    """Nobody else may come to look at it: the receiver ends with the recording."""
    home = Home(tmp_path, provider.environment)
    (tmp_path / "asks.py").write_text(ASKS)
    done = home.playhead("record", "--json", "asks.py")
    told = json.loads(done.stderr.splitlines()[-1])
    (run,) = home.runs()
    assert run["steps"] == 1 and run["input_tokens"] > 0 and run["cost_usd"] > 0
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        assert told[name] == run[name]
