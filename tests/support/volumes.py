"""File systems that a test can fill (a tmpfs in private namespaces) or break (ext4 in a file)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SHUT_DOWN = """
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
"""
"""Calls ``EXT4_IOC_SHUTDOWN`` without flushing the journal."""


class Volume:
    """A file system of some MiB at ``folder``, visible only to commands started with `within`."""

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

    @contextmanager
    def filled(self) -> Generator[None]:
        """Keep the file system full, even if space is freed in the meantime."""
        full = f"test $(stat -f -c %a {self._filler}) = 0"
        self._do(f"until cat /dev/zero >> {self._filler}; {full}; do :; done")
        yield
        self._do(f"rm {self._filler}")

    def remount(self, how: str) -> bool:
        """``ro`` or ``rw``; False if the system refuses because a file is open for writing."""
        done = self._do(f"mount -o remount,{how} {self._filler.parent}", check=False)
        return done.returncode == 0

    def _do(self, command: str, *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self.within, "sh", "-c", command], check=check, stderr=subprocess.DEVNULL
        )

    def close(self) -> None:
        """Unmount and release it."""
        self._holder.communicate()


class Journalled:
    """An ext4 at ``folder`` that becomes read-only on the first error; needs root.

    Visible only to commands started with `within`. ``image``: the file that holds it.
    """

    def __init__(self, folder: Path, image: Path, size_mib: int) -> None:
        folder.mkdir()
        self._folder, self._image = folder, image
        with open(image, "xb") as file:
            file.truncate(size_mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-e", "remount-ro", image], check=True)
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", "echo ready && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        self.within = ("nsenter", "--target", str(self._holder.pid), "--mount")
        self._mount()

    def fail(self) -> None:
        """Cause an error: nothing can be written until `mend`."""
        source = self._do("findmnt", "-no", "SOURCE", self._folder).stdout.strip()
        Path("/sys/fs/ext4", Path(source).name, "trigger_fs_error").write_text("by a test")

    def cut(self) -> None:
        """A power cut from the view of the file system: nothing reaches the disk any more."""
        self._do(sys.executable, "-c", SHUT_DOWN, self._folder)

    def mend(self) -> None:
        """Repair it, as an administrator would. No file may be open."""
        self._do("umount", self._folder)
        assert self._do("fsck.ext4", "-fy", self._image, check=False).returncode < 4
        self._mount()

    def close(self) -> None:
        """Unmount and release it."""
        self._holder.communicate()

    def _mount(self) -> None:
        self._do("mount", "-o", "loop", self._image, self._folder)

    def _do(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.within, *words], check=check, capture_output=True, text=True)


@contextmanager
def volume(folder: Path, size_mib: int) -> Generator[Volume]:
    """A `Volume` that is closed on exit."""
    made = Volume(folder, size_mib)
    try:
        yield made
    finally:
        made.close()


def may_mount() -> bool:
    """Whether a `Journalled` is possible here."""
    return os.geteuid() == 0 and os.path.exists("/dev/loop-control")


@contextmanager
def journalled(folder: Path, image: Path, size_mib: int) -> Generator[Journalled]:
    """A `Journalled` that is closed on exit."""
    made = Journalled(folder, image, size_mib)
    try:
        yield made
    finally:
        made.close()
