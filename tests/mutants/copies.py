"""A copy of the workspace with an interpreter of its own, whose sources may be changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = ("semconv", "instrumentation", "exporter", "checkpoint", "replay", "receiver", "cli")


class Copy:
    """The files of the workspace as they are now, below ``folder``.

    Its interpreter finds the distributions of the copy first, then what the workspace's has installed,
    then what runs this: so children that a test starts are of the copy too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in os.fsdecode(listed.stdout).split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        installed = next((ROOT / ".venv" / "lib").glob("python*/site-packages"))
        venv.create(folder / ".venv", with_pip=False, symlinks=True)
        own = next((folder / ".venv" / "lib").glob("python*/site-packages"))
        ours = [str(folder / one) for one in DISTRIBUTIONS]
        beside = [one for one in sys.path if one.endswith("site-packages")]
        lines = [*ours, f"import site; site.addsitedir({str(installed)!r})", *beside]
        (own / "_copy.pth").write_text("\n".join(lines) + "\n", "utf-8")
        self._scripts(installed.parents[2] / "bin")

    def _scripts(self, there: Path) -> None:
        """The commands that are installed, for this interpreter."""
        here = self.folder / ".venv" / "bin"
        for path in there.iterdir():
            if path.is_file() and not (here / path.name).exists() and path.stat().st_size < 4096:
                first, _, rest = path.read_bytes().partition(b"\n")
                if first.startswith(b"#!") and b"python" in first:
                    script = here / path.name
                    script.write_bytes(b"#!" + os.fsencode(here / "python") + b"\n" + rest)
                    script.chmod(0o755)

    def pytest(self, words: list[str], timeout_s: float, **environ: str) -> int | None:
        """Run tests; the exit status of pytest, None where they took longer. No child outlives it."""
        command = [str(self.folder / ".venv" / "bin" / "python"), "-m", "pytest", "-n", "0", "-q"]
        process = subprocess.Popen(
            [*command, "-p", "no:cacheprovider", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environ},
            stdin=subprocess.DEVNULL,
            stdout=(self.folder / "pytest.log").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
