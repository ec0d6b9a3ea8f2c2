"""A recording of exchanges imports nothing of what makes others exact, from its start to its end."""

from __future__ import annotations

import re

import pytest
from support.servers.scripted import json_reply

from playhead_cli.demo.shapes import openai_chat
from playhead_semconv import attributes as a
from playhead_semconv import events as e

ROOM = "playhead_instrumentation"

NEVER = ("control", "replayer", "scheduler")
"""Folders of the room that no recording of exchanges needs."""

WORKS = """
import asyncio, multiprocessing, os, random, sqlite3, subprocess, sys, tempfile, threading, time
import urllib.request, uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from wsgiref.simple_server import WSGIRequestHandler, make_server

import aiohttp, httpx, openai, playhead, requests, uvloop

PROVIDER = sys.argv[1]

class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        pass

def application(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]

def serves():
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
        thread.join()

def asks():
    chat = openai.OpenAI(api_key="k", base_url=PROVIDER).chat.completions
    chat.create(model="gpt-4o", messages=[])
    for get in (httpx.get, requests.get, urllib.request.urlopen):
        get(PROVIDER)

def starts():
    subprocess.run(["true"])
    subprocess.run("cat", shell=True, input=b"x", capture_output=True)
    os.system("true")
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", ""])
    os.waitpid(os.posix_spawnp("true", ["true"], os.environ), 0)
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)

def works_elsewhere():
    for method in ("spawn", "fork", "forkserver"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            assert list(pool.map(abs, [-1])) == [1]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(abs, [-1, -2]))

async def at_once():
    async with aiohttp.ClientSession() as session, session.get(PROVIDER) as answer:
        await answer.read()
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    await child.communicate(b"y")
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(3)))
    await asyncio.to_thread(abs, -1)

@playhead.tool
def tool(number):
    return number

@playhead.run
def run(number):
    return playhead.state({"n": tool(number)})

def reads():
    random.random(), time.time(), uuid.uuid4(), os.urandom(4), os.listdir(".")
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    sqlite3.connect(":memory:").execute("select 1")

if __name__ == "__main__":
    for part in (asks, starts, works_elsewhere, serves, reads):
        part()
    asyncio.run(at_once())
    uvloop.run(at_once())
    run(1)
    print("worked")
"""


@pytest.fixture
def imported(program, server) -> set[str]:
    """Modules of the room that a program and its children import, from the first to the last moment."""
    server.on("/chat/completions", json_reply(openai_chat.completion("hello")), repeat=True)
    server.script([json_reply({})], repeat=True)
    made = program(WORKS)
    command = ("python", "-v", "agent.py", server.url)  # says what is imported, to the very end
    done = made.instrumented(*command, PLAYHEAD_LEVEL="exchanges", PLAYHEAD_QUIET="1")
    assert (done.returncode, done.stdout) == (0, "worked\n"), done.stderr[-2000:]
    asked = [fact.exchange.kind for fact in made.facts(e.PLAYHEAD_EXCHANGE_REQUEST)]
    assert {"http", "process", "tool", "inbound"} <= set(asked)  # it was recorded
    levels = [one.attributes[a.PLAYHEAD_RUN_LEVEL] for one in made.facts(e.PLAYHEAD_PROCESS_START)]
    assert len(levels) > 1 and set(levels) == {"exchanges"}  # children recorded, too
    return set(re.findall(rf"^import '{ROOM}\.(\S+)' #", done.stderr, re.MULTILINE))


def test_it_imports_nothing_that_only_exact_recordings_and_replays_need(imported: set[str]):
    print(*sorted(imported), sep="\n")
    assert {"session.session", "libraries.subprocess.start", "manual.tool.exchange"} <= imported
    assert sorted(name for name in imported if name.partition(".")[0] in NEVER) == []
