"""Test doubles, servers, and runtimes that take over threads or event loops.

A recorded program does what it does without us: it prints the same, and ends the same.

Where strict is asked for and cannot be kept, that is said in one sentence, and the run says its level.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.long import long
from support.servers.jittered import Jittered
from support.servers.scripted import Gate, ScriptedServer, chat_sse, openai_chat
from support.starting.warm import playhead

from playhead_core.boundaries import LEVELS

PROGRAMS = Path(__file__).parent / "runtimes"
BIN = Path(sys.executable).parent
APART = Path(sys.prefix, "apart")
"""Where trio is installed (`make venv`)."""
APART_DOUBLES = Path(sys.prefix, "apart-doubles")
"""Where doubles and celery are."""
TIMEOUT_S = 120
STEPS_DOWN = {
    "gevent_program": "gevent makes threads into greenlets",
    "eventlet_program": "eventlet makes threads into greenlets",
    "nested_loops": "nest_asyncio lets event loops run inside each other",
    "trio_program": "trio runs tasks of its own",
    "anyio_program": "trio runs tasks of its own",
    "ipython_program": "",
    "notebook": "a Jupyter kernel waits for its notebook beside the program",
}
DOUBLES = [
    "doubles/aioresponses_program",
    "doubles/betamax_program",
    "doubles/frozen_clock",
    "doubles/httpretty_program",
    "doubles/mock_transport",
    "doubles/mocked_functions",
    "doubles/moto_program",
    "doubles/openai_double",
    "doubles/pytest_doubles",
    "doubles/requests_mock_program",
    "doubles/respx_program",
    "doubles/responses_program",
    "doubles/vcr_program",
]
SERVERS = [
    "servers/celery_prefork",
    "servers/gunicorn_gevent",
    "servers/gunicorn_preload",
    "servers/gunicorn_threads",
    "servers/starlette_client",
    "servers/tornado_server",
    "servers/uvicorn_uvloop",
]
SAMPLE = ["doubles/respx_program"]
"""Of these, what every run of the suite tries."""
LAUNCHERS = {
    "instrument": [BIN / "opentelemetry-instrument"],
    "record": ["playhead", "record", "--"],
}
REPLAYED = ("nested_loops", "trio_program", "anyio_program", "ipython_program")
AMONG_GREENLETS = ("gevent_program", "eventlet_program")


def run(
    words: list[str | Path], home: Path, folder: Path = PROGRAMS, **more: str
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PLAYHEAD_", "OTEL_"))}
    environment = {
        **kept,
        "PYTHONWARNINGS": "ignore",
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "IPYTHONDIR": str(home / "ipython"),
        **more,
    }
    name, *others = map(str, words)
    if name == "playhead":
        return playhead(*others, environ=environment, cwd=folder, timeout_s=TIMEOUT_S)
    return subprocess.run(
        words,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )


def as_without_us(program: str, launcher: str, level: str, home: Path) -> str:
    """Run it without and with us; what we said."""
    path = PROGRAMS / f"{program}.py"
    words = [sys.executable, path.name]
    more = {"PYTHONPATH": str(APART)} if "trio" in STEPS_DOWN.get(program, "") else {}
    if "/" in program:
        more = {"PYTHONPATH": str(APART_DOUBLES)}
    without = run([*words], home, path.parent, **more)
    recorded = run([*LAUNCHERS[launcher], *words], home, path.parent, PLAYHEAD_LEVEL=level, **more)
    assert (without.returncode, recorded.returncode) == (3, 3), recorded.stderr
    assert recorded.stdout == without.stdout
    return recorded.stderr


def steps_down(program: str, launcher: str, home: Path) -> None:
    said = as_without_us(program, launcher, "strict", home)
    why = STEPS_DOWN[program]
    assert said.count("recording at level causal, not strict") == (1 if why else 0), said
    assert why in said


@pytest.mark.parametrize("program", [long("gevent_program"), "notebook"])
def test_a_strict_one_steps_down_where_it_must(program, tmp_path):
    steps_down(program, "instrument", tmp_path)


@pytest.mark.acceptance
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("program", STEPS_DOWN)
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_all_levels(program, launcher, level, tmp_path):
    if level == "strict":
        steps_down(program, launcher, tmp_path)
    else:
        assert "not strict" not in as_without_us(program, launcher, level, tmp_path)


@pytest.mark.parametrize("program", SAMPLE)
def test_doubles_of_transports(program, tmp_path):
    as_without_us(program, "record", "strict", tmp_path)


@pytest.mark.acceptance
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("program", [*DOUBLES, *SERVERS])
def test_doubles_and_servers_at_all_levels(program, launcher, level, tmp_path):
    as_without_us(program, launcher, level, tmp_path)


@pytest.mark.parametrize(
    "program",
    [*REPLAYED[:2], *(pytest.param(one, marks=pytest.mark.acceptance) for one in REPLAYED[2:])],
)
def test_it_steps_down_and_its_replay_is_identical(program, tmp_path):
    steps_down(program, "record", tmp_path)
    done = run(["playhead", "replay", "last", "--json"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_program_is_tried():
    assert {*REPLAYED, *AMONG_GREENLETS, "notebook"} == set(STEPS_DOWN)


def test_no_thread_of_ours_imports_while_eventlet_holds_the_lock_of_all_imports(tmp_path):
    done = run(
        [sys.executable, "eventlet_beside_imports.py"], tmp_path, PLAYHEAD_ENDPOINT="http://localhost:9"
    )
    assert (done.returncode, done.stdout) == (3, "patched\n"), done.stderr


def test_no_thread_of_ours_waits_for_the_lock_of_logging_beside_eventlet(tmp_path):
    done = run([sys.executable, "eventlet_beside_logging.py"], tmp_path)
    assert (done.returncode, done.stdout) == (3, "True\n"), done.stderr


@pytest.mark.parametrize("program", ["gevent_program", long("eventlet_program")])
def test_it_steps_down_and_a_replay_among_greenlets_ends(program, tmp_path):
    """It runs as it likes: what it does otherwise is in the report."""
    steps_down(program, "record", tmp_path)
    done = run(["playhead", "replay", "last", "--json"], tmp_path)
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize("level", [long("exchanges"), long("causal"), "strict"])
def test_a_replay_of_concurrent_greenlets_is_identical(level, tmp_path):
    """Each greenlet has a lane, and the gate knows when the hub is idle."""
    jittered, stalls = Jittered(), Gate()
    half = chat_sse(openai_chat.completion("never read to its end"))
    with ScriptedServer() as server:
        server.on(lambda asked: b'"stalls' in asked.body, half.but(parts=[*half.parts[:1], stalls]))
        server.on(lambda _: True, jittered, repeat=True)
        more = {"MODEL_URL": server.openai_url, "PLAYHEAD_LEVEL": level}
        recorded = run(
            ["playhead", "record", "--", sys.executable, "gevent_concurrent.py"], tmp_path, **more
        )
        stalls.open()
    assert recorded.returncode == 3, recorded.stderr
    done = run(["playhead", "replay", "last", "--json"], tmp_path, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "identical"
    assert found["fidelity"]["exact"] == found["asked"]


def test_children_of_greenlets_run_no_greenlets(tmp_path):
    """The SDK's fork hook would start threads, which are greenlets here, in each child."""
    done = run([*LAUNCHERS["record"], sys.executable, "gevent_children.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1", "2", "done"]
    assert "Error" not in done.stderr and "ignored" not in done.stderr, done.stderr
