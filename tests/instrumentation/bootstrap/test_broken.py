"""Whatever of the recorder is broken, or is not found, the program does what it does without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.observed import breaking_program
from support.servers.grpc_server import GrpcServer
from support.servers.scripted import ScriptedServer, json_reply
from support.servers.websocket_server import WebSocketServer
from support.starting.programs import Program

from playhead_core.boundaries import LEVELS
from playhead_semconv import events as e


def outcomes(folder: Path, level: str, which: str, patience_s: float) -> dict[str, str]:
    """By case, what the program prints otherwise than unrecorded; under ``unrecorded`` all of that."""
    folder.mkdir(exist_ok=True)
    made = Program.of(folder, "")
    try:
        with ScriptedServer() as server, WebSocketServer() as sockets, GrpcServer() as calls:
            server.script([json_reply({"answer": "that"})], repeat=True)
            done = subprocess.run(
                [
                    *(sys.executable, breaking_program.__file__),
                    *(level, server.url, sockets.url(""), calls.target, which),
                ],
                env={**made.environ, "PLAYHEAD_QUIET": "1", "TMPDIR": str(folder)},
                stdout=subprocess.PIPE,
                text=True,
                timeout=patience_s,
                check=True,
            )
        assert made.facts(e.PLAYHEAD_EXCHANGE_REQUEST), "nothing was recorded where nothing is broken"
    finally:
        made.close()
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["case"]: line["printed"] for line in lines}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", [pytest.param("exchanges", marks=pytest.mark.acceptance), "strict"])
def test_a_broken_recorder_changes_nothing(tmp_path, level):
    found = outcomes(tmp_path / "run", level, "all", 580)
    unrecorded = found.pop("unrecorded")
    assert unrecorded.endswith("exit 7\n"), unrecorded
    assert len(found) == 14
    assert {case: printed for case, printed in found.items() if printed} == {}


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("level", LEVELS)
def test_each_attribute_and_each_layer_in_turn(tmp_path, level):
    found = outcomes(tmp_path / "run", level, "each", 1700)
    assert found.pop("unrecorded").endswith("exit 7\n")
    print(f"{level}: {len(found)} cases on {os.cpu_count()} processors")
    assert {case: printed for case, printed in found.items() if printed} == {}
