"""Limits count what calls over a WebSocket use, while it is open."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.starting.home import Home
from websockets.sync.server import ServerConnection, serve

AGENT = """
import sys
import playhead
from websockets.sync.client import connect

@playhead.tool
def look():
    return "looked"

with connect(sys.argv[1], open_timeout=60) as talk:
    for _ in range(3):
        talk.send(sys.argv[2])
        for _ in range(int(sys.argv[3])):
            talk.recv()
        try:
            print(look())
        except Exception as problem:
            print(problem.what)
"""

COUNTS = {"input_tokens": 12, "output_tokens": 5}
CREATE = {"type": "response.create", "model": "m-1", "input": "Hello"}
WIRES: dict[str, tuple[Any, list[Any]]] = {
    "/v1/realtime?model=m-1": (
        {"type": "response.create"},
        [
            {"type": "session.created", "session": {"model": "m-1"}},
            {"type": "response.created", "response": {"id": "r-1"}},
            {"type": "response.output_audio.delta", "response_id": "r-1", "delta": "UklGRg=="},
            {"type": "response.done", "response": {"id": "r-1", "status": "completed", "usage": COUNTS}},
        ],
    ),
    "/v1/responses": (
        CREATE,
        [
            {"type": "response.created", "response": {"id": "r-1", "model": "m-1", "usage": None}},
            {"type": "response.completed", "response": {"id": "r-1", "model": "m-1", "usage": COUNTS}},
        ],
    ),
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent": (
        {"setup": {"model": "models/m-1"}, "realtimeInput": {"text": "Hello"}},
        [
            {"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}}},
            {
                "serverContent": {"turnComplete": True},
                "usageMetadata": {"promptTokenCount": 12, "responseTokenCount": 5},
            },
        ],
    ),
}
"""What the program asks with, and what it is answered, by path."""


@contextmanager
def model(path: str) -> Generator[str]:
    """A server that answers each message with those of the path; its URL."""

    def answer(connection: ServerConnection) -> None:
        for number, _ in enumerate(connection):
            for message in WIRES[path][1]:
                connection.send(json.dumps(message).replace("r-1", f"r-{number}"))

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}{path}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "level", "limit"),
    [
        *((path, "exchanges", "tokens>20") for path in WIRES),
        *(long(path, "strict", "tokens>20") for path in WIRES),
        *((path, "exchanges", "cost>0.0001") for path in [*WIRES][2:]),
        *(long(path, "exchanges", "cost>0.0001") for path in [*WIRES][:2]),
    ],
)
def test_a_limit_counts_calls_over_a_websocket(tmp_path: Path, path: str, level: str, limit: str):
    home = Home(tmp_path, {"PLAYHEAD_CONTROL": f"stop {limit}"})
    home.environ["PLAYHEAD_PRICES"] = str(tmp_path / "prices.toml")
    (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "m-1"\ninput = 2\noutput = 10\n')
    (tmp_path / "agent.py").write_text(AGENT)
    asked, answers = WIRES[path]
    words = ("record", "--level", level, "agent.py")
    with model(path) as url:
        done = home.playhead(*words, url, json.dumps(asked), str(len(answers)))
    assert done.stdout.splitlines() == ["looked", *[f"the rule stop {limit} applies"] * 2], done.stderr
    status, report = home.report("last")
    assert (status, report["verdict"]) == (0, "identical")
    home.playhead("rederive")
    (run,) = home.runs()
    assert (run["input_tokens"], run["output_tokens"]) == (36, 15)
