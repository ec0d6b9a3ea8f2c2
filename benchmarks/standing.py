"""A receiver in a process of its own, and the environment of programs that record without a receiver."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
IDLE_S = 0.15
"""Processor time that an idle receiver uses within three seconds, at most."""


class Standing:
    """`playhead up` on a data directory. Its figures are totals over all its processes."""

    def __init__(self, data: Path, **settings: str) -> None:
        command = [BIN / "playhead", "up", "--json"]
        command += ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
        kept = {"PLAYHEAD_DATA_DIR": str(data), "PLAYHEAD_RETENTION": "off"}
        environment = {**os.environ, **kept, **settings}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.http, self.grpc = str(said["http"]), str(said["grpc"])
        self.query = str(said["query"])

    def cpu_s(self) -> float:
        """Processor time so far, in seconds."""
        return cpu_s(self.process.pid)

    def peak_mib(self) -> float:
        """Peak memory so far: the sum of the resident peaks of its processes."""
        return peak_mib(self.process.pid)

    def settle(self) -> None:
        """Wait until it is idle: it rests between the findings of two runs, too."""
        before = -1.0
        while (now := self.cpu_s()) > before + IDLE_S:
            before = now
            time.sleep(3)

    def stop(self, number: int) -> None:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        self.process.wait(120)


def tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def cpu_s(pid: int) -> float:
    """Processor time of a process and its living descendants, in seconds."""
    total = 0
    for one in tree(pid):
        words = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(words[11]) + int(words[12])
    return total * TICK_S


def peak_mib(pid: int) -> float:
    """Sum of their peaks of resident memory."""
    total = 0
    for one in tree(pid):
        status = Path(f"/proc/{one}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        total += int(line.split()[1])
    return total / 1024


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def disk_bytes(folder: Path) -> int:
    """Total size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def unheard(spool: Path, data: Path) -> dict[str, str]:
    """The environment of programs that record to ``spool`` while nothing listens."""
    return {
        **os.environ,
        "PLAYHEAD_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        "PLAYHEAD_ENDPOINT_KIND": "playhead",
        "PLAYHEAD_SPOOL_DIR": str(spool),
        "PLAYHEAD_DATA_DIR": str(data),
        "PLAYHEAD_EXIT_FLUSH_MS": "0",
        "PLAYHEAD_QUIET": "1",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai",  # of other projects, with this name
        "PLAYHEAD_BOUNDARIES": "+openai",
    }
