"""What the distributions take on a machine: wheels are built and installed into empty environments.

Each row: packages, bytes of ``site-packages`` with compiled bytecode, and how long pip took with a warm
cache. pip and setuptools, which the environment has from the start, are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
INSTALLED = (
    "playhead-agent",
    "playhead-agent[grpc]",
    "playhead",
    "playhead[postgres,s3]",
    "playhead[demo]",
)


def build(folder: Path) -> None:
    """Wheels of all distributions, by the interpreter that runs this."""
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    for project in sorted(ROOT.glob("*/pyproject.toml")):
        subprocess.run([*words, str(project.parent)], check=True, stdout=subprocess.DEVNULL)


def install(name: str, wheels: Path, folder: Path) -> dict[str, Any]:
    """Install ``name`` into a new environment below ``folder``."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    before = packages_of(python)
    words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["-c", str(ROOT / "constraints.txt"), "--find-links", str(wheels), name]
    spent, begun = cpu_s(), time.monotonic()
    subprocess.run([str(python), *words], check=True)
    took, spent = time.monotonic() - begun, cpu_s() - spent
    packages = packages_of(python) - before
    return {
        "name": name,
        "packages": len(packages),
        "ours": len([one for one in packages if one.startswith("playhead")]),
        "bytes": bytes_of(next(folder.glob("lib/python*/site-packages"))),
        "wall_s": round(took, 1),
        "cpu_s": round(spent, 1),
    }


def packages_of(python: Path) -> set[str]:
    words = [str(python), "-m", "pip", "list", "--disable-pip-version-check", "--format=json"]
    listed = subprocess.run(words, check=True, capture_output=True).stdout
    return {one["name"] for one in json.loads(listed)}


def bytes_of(site: Path) -> int:
    """Sizes of the files, without those of pip and setuptools."""
    brought = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    return sum(
        os.lstat(os.path.join(folder, name)).st_size
        for folder, _, names in os.walk(site)
        for name in names
        if not os.path.relpath(os.path.join(folder, name), site).startswith(brought)
    )


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        wheels = Path(scratch, "wheels")
        build(wheels)
        install("playhead[demo,postgres,s3]", wheels, Path(scratch, "warm"))  # fills pip's cache
        rows = [install(name, wheels, Path(scratch, str(n))) for n, name in enumerate(INSTALLED)]
    print("| | packages | of playhead | size | pip took |\n|---|---|---|---|---|")
    for row in rows:
        print(
            f"| `{row['name']}` | {row['packages']} | {row['ours']} | {row['bytes'] / 1e6:.0f} MB "
            f"| {row['wall_s']:.0f} s ({row['cpu_s']:.0f} s of processor) |"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
