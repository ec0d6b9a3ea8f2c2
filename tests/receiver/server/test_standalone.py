"""`python -m playhead_receiver`: a server that needs no command line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from playhead_receiver.system.writer_lock import WriterLock, running

SERVE = [sys.executable, "-m", "playhead_receiver"]
PORTS = ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    return {**kept, "PLAYHEAD_DATA_DIR": str(data_dir), **more}


def test_it_serves_until_a_signal_stops_it(tmp_path: Path):
    child = subprocess.Popen(
        [*SERVE, *PORTS], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    try:
        line = child.stderr.readline()
        http, query = re.findall(r"http://[0-9.:]+", line)
        assert httpx.get(f"{http}/health").json() == {"status": "ok"}
        assert httpx.get(f"{query}/v1/runs").json()["runs"] == []
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert child.stderr.read() == "playhead: stopping\n"
    finally:
        child.kill()
        child.communicate()
    assert running(tmp_path) is None


def test_an_error_is_said_in_words_with_its_status(tmp_path: Path):
    lock = WriterLock.take(tmp_path)
    try:
        done = subprocess.run(
            [*SERVE, *PORTS], env=environment(tmp_path), capture_output=True, text=True, timeout=60
        )
    finally:
        lock.release()
    assert done.returncode == 1
    assert done.stderr.startswith("error[store-busy]: ")
    wrong = environment(tmp_path, PLAYHEAD_FORWARD="gopher://x")
    done = subprocess.run([*SERVE, *PORTS], env=wrong, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error[configuration]: ")


WITHOUT_GRPC = """\
import sys
sys.modules["grpc"] = None
from playhead_receiver.__main__ import main
sys.exit(main())
"""


def test_without_grpcio_it_serves_http_and_says_so(tmp_path: Path):
    child = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_GRPC, *PORTS],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    try:
        line = child.stderr.readline()
        http, _ = re.findall(r"http://[0-9.:]+", line)
        assert "grpc" not in line
        assert "playhead[grpc]" in child.stderr.readline()
        assert httpx.get(f"{http}/health").json() == {"status": "ok"}
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()


def test_without_grpcio_nothing_is_forwarded_over_grpc(tmp_path: Path):
    wanted = environment(tmp_path, PLAYHEAD_FORWARD="grpc://127.0.0.1:4317")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GRPC, *PORTS], env=wanted, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "playhead[grpc]" in done.stderr


def test_nothing_of_a_terminal_is_loaded():
    code = "import sys, playhead_receiver.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "playhead_receiver" in loaded
    assert not loaded & {"playhead_cli", "rich", "mcp"}
