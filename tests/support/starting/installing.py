"""Libraries of a test's own, in a folder beside the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def install(folder: Path, *wanted: str) -> None:
    """Put distributions and what they require into ``folder``, as the registry has them now.

    By uv; by pip where uv does not reach the registry.
    """
    uv = [str(Path(sys.prefix, "bin", "uv")), "pip", "install", "--python", sys.executable]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    words = ["--quiet", "--target", str(folder), *wanted]
    if subprocess.run([*uv, *words], capture_output=True, check=False).returncode:
        done = subprocess.run([*pip, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
