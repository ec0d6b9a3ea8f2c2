"""Errors of connections that nobody handles: a replay that raises them again is identical."""

import json

import pytest
from support.starting.home import Home

ASK = '(model="gpt-5.5", messages=[{"role": "user", "content": "hi"}])'
OPENAI = 'api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=1'
PROGRAMS = {
    "httpx": 'import httpx\nhttpx.get("http://127.0.0.1:9/")\n',
    "httpx async": """
import asyncio, httpx
async def main():
    async with httpx.AsyncClient() as client:
        await client.get("http://127.0.0.1:9/")
asyncio.run(main())
""",
    "openai": f"import openai\nopenai.OpenAI({OPENAI}).chat.completions.create{ASK}\n",
    "openai async": f"""
import asyncio, openai
async def main():
    await openai.AsyncOpenAI({OPENAI}).chat.completions.create{ASK}
asyncio.run(main())
""",
    "requests": 'import requests\nrequests.get("http://127.0.0.1:9/")\n',
    "urllib": 'import urllib.request\nurllib.request.urlopen("http://127.0.0.1:9/")\n',
    "aiohttp": """
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session:
        await session.get("http://127.0.0.1:9/")
asyncio.run(main())
""",
    "websockets": """
import asyncio
from websockets.asyncio.client import connect
async def main():
    await connect("ws://127.0.0.1:9/")
asyncio.run(main())
""",
    "logged": """
import httpx, logging, traceback
try:
    httpx.get("http://127.0.0.1:9/")
except httpx.ConnectError:
    logging.exception("not there")
    print(traceback.format_exc())
    raise SystemExit(4)
""",
}


SAMPLE = ("httpx async", "openai", "aiohttp", "logged")


@pytest.mark.parametrize(
    "name",
    [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.acceptance) for one in PROGRAMS],
)
def test_its_replay_is_identical(name, tmp_path):
    home = Home(tmp_path, {})
    (tmp_path / "agent.py").write_text(PROGRAMS[name])
    assert home.playhead("record", "agent.py").returncode == (4 if name == "logged" else 1)
    done = home.playhead("replay", "last", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (0, "identical"), report["first_divergence"]


def test_a_program_that_fails_otherwise_is_not(tmp_path):
    home = Home(tmp_path, {})
    (tmp_path / "agent.py").write_text(PROGRAMS["logged"])
    home.playhead("record", "agent.py")
    (tmp_path / "agent.py").write_text(PROGRAMS["logged"].replace('"not there"', '"gone"'))
    done = home.playhead("replay", "last", "--force", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (1, "diverged")
    assert report["first_divergence"]["what"] == "stderr"
    assert "gone" in json.dumps(report["first_divergence"])
