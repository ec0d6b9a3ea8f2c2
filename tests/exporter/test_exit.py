"""The end of a process: what it had to say is delivered, or safe, and it does not wait for nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace
from support.servers.endpoints import Reply, grpc_endpoint
from support.starting.forking import UNWARNED

from playhead_exporter.push import pending, push
from playhead_exporter.tape_exporter import FIRST_MEETING_S

HEAD_OF_CHILD = """
import json, os, sys, threading, time
from playhead_exporter import open_tape_exporter
from playhead_core.facts import Content, Fact
tape_exporter = open_tape_exporter({"service.name": "child"})
def say(n):
    return tape_exporter.sink.append(Fact(n, 1, "playhead.state", body=Content.chunk(b"%d" % n)))
"""


def run(script, settings, **environ):
    environ = {
        **os.environ,
        "PLAYHEAD_SPOOL_DIR": settings.spool_dir,
        "PLAYHEAD_DESTINATION": settings.destination,
        "PLAYHEAD_ENDPOINT": settings.endpoint,
        "PLAYHEAD_PROTOCOL": settings.protocol,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        **environ,
    }
    done = subprocess.run(
        [sys.executable, *UNWARNED, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=150,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


PATIENT = """
import os
from playhead_exporter import tape_exporter
tape_exporter.FIRST_MEETING_S = tape_exporter.DISK_AT_EXIT_S = 60.0
os.environ["PLAYHEAD_EXIT_FLUSH_MS"] = "60000"
"""
"""For an endpoint that answers, and threads that end, but not in time where the machine is busy."""

PATIENT_CHILD = PATIENT + HEAD_OF_CHILD

WAITS_AT_EXIT = (
    """
import atexit
from support.waits import waits
noted = waits()
def told():
    print(max(asked, default=0.0))
atexit.register(told)
"""
    + HEAD_OF_CHILD
)
"""Prints the longest that it may wait for anything, from ``asked = noted.__enter__()`` to its end."""


def test_a_process_that_ends_delivers_first(settings, endpoint):
    to = replace(settings, endpoint=endpoint.url)
    status, _, err = run(PATIENT_CHILD + "for n in range(500): say(n)\n", to)
    assert (status, err) == (0, "")
    assert [fact.seq for fact in endpoint.facts()] == list(range(500))
    assert pending(to) == []


def test_a_process_that_ends_by_sys_exit_keeps_its_status(settings, endpoint):
    to = replace(settings, endpoint=endpoint.url)
    assert run(PATIENT_CHILD + "say(0)\nsys.exit(7)\n", to)[0] == 7
    assert len(endpoint.facts()) == 1


def test_a_dead_receiver_costs_the_exit_next_to_nothing(settings):
    script = WAITS_AT_EXIT + "say(0)\nasked = noted.__enter__()\n"
    status, (longest_s,), err = run(script, settings, PLAYHEAD_QUIET="1")
    assert (status, err) == (0, "")
    assert longest_s <= FIRST_MEETING_S
    assert [one.facts for one in pending(settings)] == [1]


def test_a_receiver_that_hangs_costs_the_exit_no_more_than_allowed(settings, endpoint):
    """It answered first, so the process waits for it, but not longer than the setting says."""
    to = replace(settings, endpoint=endpoint.url)
    script = WAITS_AT_EXIT + "say(0)\ntape_exporter.flush(60)\nsay(1)\nasked = noted.__enter__()\n"
    endpoint.rule = lambda path, body: Reply(how="hang") if len(endpoint.requests) == 1 else None
    status, (longest_s,), _ = run(script, to, PLAYHEAD_EXIT_FLUSH_MS="300")
    assert status == 0
    assert longest_s == 0.3
    endpoint.rule = None
    push(to)
    assert {fact.seq for fact in endpoint.facts()} == {0, 1}


def test_a_process_that_says_nothing_leaves_nothing(settings, tmp_path):
    status, _, err = run(HEAD_OF_CHILD, settings)
    assert (status, err, list(tmp_path.iterdir())) == (0, "", [])


def test_a_fork_that_ends_in_order_delivers_its_own(settings, endpoint):
    to = replace(settings, endpoint=endpoint.url)
    script = PATIENT_CHILD + (
        "say(0)\ntape_exporter.flush(60)\npid = os.fork()\nsay(1)\nif pid: os.waitpid(pid, 0)\n"
    )
    status, _, err = run(script, to)
    assert (status, err) == (0, "")
    assert sorted(fact.body.inline for fact in endpoint.facts()) == [b"0", b"1", b"1"]
    assert len({fact.instance for fact in endpoint.facts()}) == 2
    assert pending(to) == []


def test_a_parent_delivers_what_its_dead_children_left(settings, endpoint):
    to = replace(settings, endpoint=endpoint.url)
    script = PATIENT_CHILD + (
        "say(0)\ntape_exporter.flush(60)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    say(1)\n    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    run(script, to)
    assert {fact.body.inline for fact in endpoint.facts()} == {b"0", b"1"}
    assert pending(to) == []


def test_a_fork_over_grpc(settings):
    with grpc_endpoint() as endpoint:
        to = replace(settings, endpoint=endpoint.url, protocol="grpc")
        script = PATIENT_CHILD + (
            "say(0)\ntape_exporter.flush(60)\n"
            "pid = os.fork()\n"
            "say(1)\n"
            "delivered = tape_exporter.flush(60)\n"
            "os.write(1, json.dumps([pid == 0, delivered]).encode() + b'\\n')\n"
            "if pid: os.waitpid(pid, 0)\n"
        )
        status, said, _ = run(script, to)
        assert status == 0
        assert [True, True] in said and [False, True] in said
        assert sorted(fact.body.inline for fact in endpoint.facts()) == [b"0", b"1", b"1"]


def test_the_threads_have_names_and_are_none_of_the_programs_even_after_a_message(settings):
    script = HEAD_OF_CHILD + (
        "from playhead_core.process import interpreter_threads as native\n"
        "reader, writer = os.pipe()\n"
        "os.dup2(writer, 2)\n"
        "say(0)\ntape_exporter.flush(60)\n"
        "while len(native.threads()) < 2: time.sleep(0.01)\n"
        "message = os.read(reader, 10).decode()\n"
        "running = native.threads()\n"
        "tape_exporter.close(60)\n"
        "names = [threading.Thread().name, message]\n"
        "print(json.dumps([running, threading.active_count(), names]))\n"
    )
    said = run(script, settings)[1]
    assert said == [[["playhead-copier", "playhead-shipper"], 1, ["Thread-1", "playhead: "]]]


def test_no_grpc_is_imported_for_http(settings, endpoint):
    to = replace(settings, endpoint=endpoint.url)
    script = HEAD_OF_CHILD + (
        "say(0)\ntape_exporter.flush(60)\n"
        "print(json.dumps(sorted({'grpc', 'asyncio'} & set(sys.modules))))\n"
    )
    assert run(script, to)[1] == [[]]
