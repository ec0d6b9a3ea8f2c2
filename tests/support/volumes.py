"""Small file systems that a test can fill: a tmpfs in namespaces of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class Volume:
    """A file system of some MiB at ``folder``, seen only by commands that stand behind `within`."""

    def __init__(self, folder: Path, size_mib: int) -> None:
        folder.mkdir()
        self._filler = folder / "filler"
        self._holder = subprocess.Popen(
            [
                *("unshare", "--map-root-user", "--mount", "sh", "-c"),
                f"mount -t tmpfs -o size={size_mib}m none {folder} && echo ready && exec cat",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        target = str(self._holder.pid)
        self.within = ("nsenter", "--target", target, "--user", "--mount", "--preserve-credentials")

    def fill(self) -> None:
        """Leave not a byte."""
        self._do(f"cat /dev/zero >> {self._filler}; test $(stat -f -c %a {self._filler}) = 0")

    def clear(self) -> None:
        """Give back what `fill` took."""
        self._do(f"rm {self._filler}")

    def _do(self, command: str) -> None:
        subprocess.run([*self.within, "sh", "-c", command], check=True, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        """Let go of it."""
        self._holder.communicate()


@contextmanager
def volume(folder: Path, size_mib: int) -> Generator[Volume]:
    """A `Volume`, closed at the end."""
    made = Volume(folder, size_mib)
    try:
        yield made
    finally:
        made.close()
