"""Requests of playhead's own threads wait in no event loop of gevent or eventlet."""

import os
import subprocess
import sys

import pytest
from support.servers.scripted import ScriptedServer, json_reply

PATCHED = {
    "gevent": "from gevent import monkey; monkey.patch_all(); from gevent.hub import Hub",
    "eventlet": "import eventlet; eventlet.monkey_patch(); from eventlet.hubs.hub import BaseHub as Hub",
}
OURS = """
from playhead_exporter.delivery import Endpoint
from playhead_exporter.shipping.http import HttpTransport
from playhead_instrumentation.control.channel import Address
from playhead_core.control.messages import OrdersWanted
from playhead_core.process.interpreter_threads import Thread
from playhead_core.settings import Settings
"""
PROGRAM = """
import gc, sys
{first}
{second}
said = []
def hubs():
    return [one for one in gc.get_objects() if isinstance(one, Hub)]
before = hubs()
def run():
    try:
        transport = HttpTransport(Endpoint.parse(sys.argv[1], "http/protobuf"), "")
        for _ in range(2):
            said.append(type(transport.about(20.0)).__name__)
        address = Address(Settings(endpoint=sys.argv[1]))
        said.append(address.post("/orders", OrdersWanted("", 0, 0), 20.0))
    except BaseException as problem:
        said.append(problem)
thread = Thread("playhead-test", run)
thread.start()
assert thread.join(40)
print(*said, len(hubs()) - len(before), flush=True)
"""


@pytest.mark.parametrize("patched", PATCHED)
@pytest.mark.parametrize("when", ["before", "after"])
def test_no_loop_is_made_for_a_thread_that_ships(patched: str, when: str):
    lines = [PATCHED[patched], OURS]
    first, second = lines if when == "before" else reversed(lines)
    with ScriptedServer() as server:
        server.script([json_reply({"answer": "that"})], repeat=True)
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore",
                "-c",
                PROGRAM.format(first=first, second=second),
                server.url,
            ],
            env={**os.environ, "EVENTLET_NO_GREENDNS": "yes"},  # its patches stumble over dnspython
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.stdout, done.stderr) == ("""About About b'{"answer":"that"}' 0\n""", "")
