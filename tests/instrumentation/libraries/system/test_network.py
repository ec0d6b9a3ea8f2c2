"""Connections that no boundary answers: effects of a recording, refused at replay."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.observed.again import recorded, replayed
from support.servers.scripted import ScriptedServer, json_reply
from support.starting.programs import Program
from support.tapes.sessions import record, recording, replay

import playhead
from playhead_core.errors import WorldBlocked
from playhead_core.facts import Fidelity
from playhead_core.process.module_coverage import unseen_among
from playhead_instrumentation.libraries.system.network import NetworkBlocked
from playhead_instrumentation.recorder.options import Allowed
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def connect(port):
    socket.create_connection(("127.0.0.1", port)).close()


def connect_raw(port):
    with socket.socket() as raw:
        raw.connect(("127.0.0.1", port))


def connect_ex(port):
    with socket.socket() as raw:
        raw.connect_ex(("127.0.0.1", port))


def send_datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.sendto(b"x", ("127.0.0.1", port))
        raw.sendto(b"y", ("127.0.0.1", port))


def look_up(port):
    socket.getaddrinfo("localhost", port)


def open_connection(port):
    async def opened():
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    asyncio.run(opened())


WAYS = [connect, connect_raw, connect_ex, send_datagram, look_up, open_connection]


def effects(tape, kind="socket"):
    found = [fact.attributes for fact in tape.facts() if fact.name == e.PLAYHEAD_EFFECT]
    return [one for one in found if one[a.PLAYHEAD_EFFECT_KIND] == kind]


@pytest.mark.parametrize("reach", WAYS)
def test_blocked_and_reported(reach):
    tape = record(lambda: None)[1]
    with ScriptedServer() as server:
        with recording(tape) as sink, pytest.raises(OSError) as caught:
            reach(server.port)
        assert server.connections == 0
    error = caught.value
    assert isinstance(error, NetworkBlocked) and isinstance(error, WorldBlocked)
    assert error.errno == 13
    host = "localhost" if reach is look_up else "127.0.0.1"
    (blocked,) = effects(sink.tape())[:1]
    place = blocked.pop(a.PLAYHEAD_EFFECT_PLACE)
    assert place.startswith("test_network.py:")
    assert blocked == {
        a.PLAYHEAD_EFFECT_KIND: "socket",
        a.PLAYHEAD_EFFECT_TARGET: f"{host}:{server.port}",
        a.PLAYHEAD_FIDELITY: "blocked",
    }
    assert error.cause == f"{place}: the tape has no answer to it, no boundary records it"
    assert "@playhead.tool" in error.hint


@pytest.mark.parametrize("reach", WAYS)
def test_an_effect_of_a_recording(reach):
    with ScriptedServer() as server:
        _, tape = record(lambda: reach(server.port))
    kind, host = ("dns", "localhost") if reach is look_up else ("socket", "127.0.0.1")
    found = effects(tape, kind)
    assert [one[a.PLAYHEAD_EFFECT_TARGET] for one in found] == [f"{host}:{server.port}"]
    assert found[0][a.PLAYHEAD_EFFECT_PLACE].startswith("test_network.py:")
    assert a.PLAYHEAD_FIDELITY not in found[0]


def test_it_hangs_on_the_span_that_caused_it():
    from opentelemetry.sdk.trace import TracerProvider

    with ScriptedServer() as server, recording() as sink:
        with TracerProvider().get_tracer("x").start_as_current_span("step") as span:
            connect_raw(server.port)
    (fact,) = sink.named(e.PLAYHEAD_EFFECT)
    assert fact.span_id == span.get_span_context().span_id.to_bytes(8)


def test_what_a_boundary_does_beneath_itself_is_no_effect():
    with ScriptedServer() as server:
        server.script([json_reply({}), json_reply({})])

        async def later():
            async with httpx.AsyncClient(timeout=60) as client:
                return (await client.get(server.url)).status_code

        _, tape = record(lambda: [httpx.get(server.url, timeout=60).status_code, asyncio.run(later())])
    assert effects(tape) == effects(tape, "dns") == []


def test_pairs_within_the_process_are_no_network():
    def paired():
        left, right = socket.socketpair()
        left.sendall(b"x")
        assert right.recv(1) == b"x"
        left.close()
        right.close()

    _, tape = record(paired)
    assert effects(tape) == []
    with recording(tape):
        paired()


def test_a_host_that_is_allowed_is_reached_and_noted():
    tape = record(lambda: None)[1]
    with ScriptedServer() as server:
        server.script([json_reply({"now": 1})])
        allowed = Allowed(hosts=frozenset(["localhost"]))

        def program():
            connect(server.port)
            return httpx.get(f"http://localhost:{server.port}/", timeout=60).json()

        found, now = replay(program, tape, allowed=allowed)
        assert found == {"now": 1}
    (one,) = effects(now)
    assert one[a.PLAYHEAD_FIDELITY] == Fidelity.LIVE
    assert compare(tape, now).boundaries == {"http": {Fidelity.LIVE: 1}}
    with pytest.raises(NetworkBlocked):
        replay(lambda: connect_raw(1), tape, allowed=Allowed(hosts=frozenset(["example.invalid"])))


def test_a_tool_that_is_allowed_runs_for_real():
    with ScriptedServer() as server:
        ran: list[int] = []

        @playhead.tool
        def reach(number):
            connect(server.port)
            ran.append(number)
            return len(ran)

        @playhead.tool
        def other():
            return len(ran)

        def program():
            return [reach(1), reach(2), other()]

        first, tape = record(program)
        second, now = replay(program, tape, allowed=Allowed(tools=frozenset(["reach"])))
    assert (first, second) == ([1, 2, 2], [3, 4, 2])
    report = compare(tape, now)
    assert report.boundaries == {"tool": {Fidelity.LIVE: 2, Fidelity.EXACT: 1}}
    assert (report.verdict, report.unused) == ("identical", [])


def test_drivers_that_connect_in_c_are_known_by_name():
    found = unseen_among(["json", "pymongo.errors", "psycopg2", "snowflake", "snowflake.connector.x"])
    assert list(found) == ["pymongo", "psycopg2", "snowflake.connector"]
    assert found["psycopg2"].in_c and found["psycopg2"].advice.startswith("it connects in C")
    assert not found["pymongo"].in_c


DRIVER = """
import socket

def connect(port):
    return socket.create_connection(("127.0.0.1", port))
"""

AGENT = """
import sys, thedb
print("before")
thedb.connect(int(sys.argv[1])).close()
"""


def test_the_library_and_the_line_are_named(tmp_path):
    installed = Path(tmp_path, "lib", "site-packages")
    installed.mkdir(parents=True)
    (installed / "thedb.py").write_text(DRIVER)
    with ScriptedServer() as server:
        program = Program.of(tmp_path, AGENT, PYTHONPATH=str(installed), PYTHONHASHSEED="0")
        done, tape = recorded(program, str(server.port))
        assert done.returncode == 0, done.stderr
        (effect,) = effects(tape)
        assert effect[a.PLAYHEAD_EFFECT_LIBRARY] == "thedb"
        assert effect[a.PLAYHEAD_EFFECT_PLACE] == "agent.py:4"
        again, now = replayed(program, tape, arguments=(str(server.port),))
        assert server.connections <= 1
    assert again.returncode == 1
    said = f"the replay does not let thedb reach 127.0.0.1:{server.port}"
    assert said in again.stderr and "cause: agent.py:4: the tape has no answer" in again.stderr
    report = compare(tape, now)
    assert report.exit_code == 3
    first = report.first_divergence
    assert first is not None
    assert first.what == f"blocked socket 127.0.0.1:{server.port}"
    assert first.detail == "thedb in agent.py:4: the tape has no answer to it"


def test_nothing_of_ours_is_an_effect(tmp_path):
    # The exporter tries its endpoint the whole time.
    program = Program.of(tmp_path, "import time\ntime.sleep(0.2)", PLAYHEAD_EXPORT_INTERVAL_MS="10")
    program.environ["PLAYHEAD_ENDPOINT_KIND"] = "auto"
    done, tape = recorded(program)
    assert done.returncode == 0, done.stderr
    assert effects(tape) == effects(tape, "dns") == []


LATE = """
import ctypes, sys, types

late = sys.modules["late"] = types.ModuleType("late")


class Late:
    def __init__(self):
        self.audit = sys.audit

    def __del__(self):
        self.audit("something.late")


late.one = Late()
from playhead_instrumentation.libraries.system import guards, network
from playhead_instrumentation.libraries.subprocess_full import fence

network._install(), fence._install(), guards._install(frozenset())
for module in (late, network, fence, guards):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))  # so that the interpreter empties it at its end
"""


def test_an_event_at_the_very_end_of_a_process_is_no_trouble():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
