"""Other stores of GenAI traces in pinned versions, each with its own virtual environment and folder."""

from __future__ import annotations

import atexit
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import ClassVar

from standing import cpu_s, free_port, peak_mib

ENVIRONMENTS = Path(__file__).parent.parent / ".venv-peers"
PATIENCE_S = 180


class Peer:
    """A server of another project with data in ``data``, with the interface of `Standing`."""

    name: ClassVar[str]
    package: ClassVar[str]
    protocols: ClassVar[tuple[str, ...]]
    headers: ClassVar[dict[str, str]] = {}
    count: ClassVar[str]
    """The statement that counts its spans."""

    def __init__(self, data: Path) -> None:
        self.http_port, self.grpc_port = free_port(), free_port()
        self.http, self.grpc = f"http://127.0.0.1:{self.http_port}", f"127.0.0.1:{self.grpc_port}"
        self.database = data / "peer.db"
        bin = ENVIRONMENTS / self.package.partition("==")[0] / "bin"
        if not (bin / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", bin.parent], check=True)
            install = [bin / "pip", "install", "--quiet", "--disable-pip-version-check", self.package]
            subprocess.run(install, check=True)
            (bin / "ready").touch()
        with (data / "peer.log").open("a") as log:
            self.process = subprocess.Popen(
                self.command(bin, data),
                env={**os.environ, **self.environment(data)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        atexit.register(self.stop, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.package} did not start, see {data / 'peer.log'}")
            time.sleep(0.2)

    def command(self, bin: Path, data: Path) -> list[str]:
        """The command that starts it."""
        raise NotImplementedError

    def environment(self, data: Path) -> dict[str, str]:
        """Its additional environment variables."""
        return {}

    def cpu_s(self) -> float:
        """Processor time so far, in seconds."""
        return cpu_s(self.process.pid)

    def peak_mib(self) -> float:
        """Peak memory of its processes."""
        return peak_mib(self.process.pid)

    def stored(self) -> int:
        """Number of spans in its database."""
        try:
            with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60) as db:
                return int(db.execute(self.count).fetchone()[0])
        except sqlite3.OperationalError:
            return 0

    def stop(self, number: int) -> None:
        """Send a signal to all its processes and wait for their end. Idempotent."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        self.process.wait(120)

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self.http, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True


class Phoenix(Peer):
    """Arize Phoenix on SQLite, with default settings."""

    name = "phoenix"
    package = "arize-phoenix==20.26.1"
    protocols = ("grpc", "http")
    count = "SELECT count(*) FROM spans"

    def command(self, bin: Path, data: Path) -> list[str]:
        """The command that starts it."""
        return [str(bin / "phoenix"), "serve"]

    def environment(self, data: Path) -> dict[str, str]:
        """Its additional environment variables."""
        return {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.http_port),
            "PHOENIX_GRPC_PORT": str(self.grpc_port),
            "PHOENIX_WORKING_DIR": str(data),
            "PHOENIX_SQL_DATABASE_URL": f"sqlite:///{self.database}",
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }


class MLflow(Peer):
    """MLflow on SQLite, with one worker, which is fastest there."""

    name = "mlflow"
    package = "mlflow==3.17.2"
    protocols = ("http",)
    headers: ClassVar[dict[str, str]] = {"x-mlflow-experiment-id": "0"}
    count = "SELECT count(*) FROM spans"

    def command(self, bin: Path, data: Path) -> list[str]:
        """The command that starts it."""
        words = ["server", "--host", "127.0.0.1", "--port", str(self.http_port), "--workers", "1"]
        words += ["--backend-store-uri", f"sqlite:///{self.database}"]
        return [str(bin / "mlflow"), *words, "--default-artifact-root", str(data / "artifacts")]

    def environment(self, data: Path) -> dict[str, str]:
        """Its additional environment variables."""
        return {"MLFLOW_DISABLE_TELEMETRY": "true", "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}


PEERS: tuple[type[Peer], ...] = (Phoenix, MLflow)


def kept_after_kill(kind: type[Peer], standing: Peer, data: Path) -> int:
    """Kill it, start it again, and wait until it is idle.

    Returns the number of spans in its database.
    """
    standing.stop(signal.SIGKILL)
    again = kind(data)
    before = -1
    while (now := again.stored()) > before:
        before = now
        time.sleep(4)
    again.stop(signal.SIGKILL)
    return before
