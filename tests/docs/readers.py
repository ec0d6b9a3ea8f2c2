"""Who reads a page: a fresh home, an empty folder, and what the page takes for granted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import trustme
from support.servers.postgres import PostgresServer

from playhead_cli.demo.keeping import stop
from playhead_cli.demo.provider import Provider

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Reader:
    """What a reader has."""

    key: bool = True
    """A key of a provider; here, the way to the demo's."""
    files: tuple[tuple[str, str], ...] = (("agent.py", "examples/weather_agent.py"),)
    """Files in the folder, by name, and where they are in the repository."""
    database: bool = False
    """An empty database of PostgreSQL, and its URL in ``DATABASE_URL``."""
    certificate: bool = False
    """A certificate for localhost in ``cert.pem`` and ``key.pem``, and who signed it in ``ca.pem``."""
    installs: bool = False
    """Nothing is installed but Python. The index of packages has the wheels of this repository, too."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a reader sits."""

    folder: Path
    environ: Mapping[str, str]
    scratch: Path


@contextmanager
def seated(reader: Reader) -> Iterator[Desk]:
    """A desk for a reader; all of it is gone afterwards."""
    with TemporaryDirectory(prefix="playhead-docs-") as base, ExitStack() as house:
        home, folder = Path(base, "home"), Path(base, "work")
        home.mkdir()
        folder.mkdir()
        environ = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "USER": os.environ.get("USER", "reader"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }
        if reader.installs:
            environ |= with_an_index(Path(base))
        else:
            environ |= with_all_installed()
        if reader.key:
            environ |= house.enter_context(Provider()).environment
        if reader.database:
            environ["DATABASE_URL"] = house.enter_context(database())
        if reader.certificate:
            lay_certificate(folder)
        for name, source in reader.files:
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, place)
        house.callback(stop, home / ".local" / "share" / "playhead")  # a provider that the page kept
        yield Desk(folder, environ, Path(base, "typed"))


def with_all_installed() -> dict[str, str]:
    """Where this environment's programs are found, and pip has nothing to fetch."""
    here = Path(sys.executable).parent
    return {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}", "PIP_NO_INDEX": "1"}


def with_an_index(base: Path) -> dict[str, str]:
    """An empty Python of the reader's own, whose pip finds the wheels of this repository, too."""
    python, wheels = base / "python", base / "wheels"
    subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    rooms = [str(path.parent) for path in ROOT.glob("*/pyproject.toml")]
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*words, "-w", str(wheels), *rooms], check=True)
    return {
        "PATH": os.pathsep.join([str(python / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]),
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    }


@contextmanager
def database() -> Iterator[str]:
    """A server of PostgreSQL with an empty database: its URL."""
    server = PostgresServer()
    server.start()
    try:
        yield server.url()
    finally:
        server.remove()


def lay_certificate(folder: Path) -> None:
    """Write a certificate for localhost, its key, and the certificate of who signed it."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
