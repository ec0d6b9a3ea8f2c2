"""The file system as an isolated program sees it: read-only, covered by overlays, without sockets."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from .system_calls import (
    AT_RECURSIVE,
    MOUNT_ATTR_NODEV,
    MOUNT_ATTR_NOSUID,
    MOUNT_ATTR_RDONLY,
    MS_BIND,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_attributes,
    tried,
)

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "nvidia*", "kfd", "dri")
"""Entries of ``/dev`` that stay: graphics processors, and devices that keep nothing written to them."""

LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}

SYSTEM: Final = ("/proc", "/sys", "/dev")
"""Folders in which no other program places sockets; they are read-only or mounted again."""

OVERLAYS: Final = 256
"""Largest number of folders that are covered with an overlay."""


class FileView:
    """The file system as the command sees it."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._inside = os.path.join(scratch, "over")
        self._made = 0
        self.whole = True
        """Whether no socket and no pipe of another program remains reachable."""

    def only_in_scratch(self) -> None:
        """Make everything read-only except the scratch folder. `OSError`."""
        cwd, scratch, inside = os.getcwd(), self._scratch, self._inside
        points = _mount_points()
        own = _apart([cwd, "/tmp", "/var/tmp"], points)
        lower = {folder: os.open(folder, os.O_PATH) for folder in own}
        os.mkdir(inside)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        mount(scratch, scratch, None, MS_BIND)
        mount("tmpfs", inside, "tmpfs")
        tried(lambda: mount("proc", "/proc", "proc", MS_NOSUID))
        devices = _lay_devices()
        set_attributes("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, AT_RECURSIVE)
        for device in devices:
            tried(lambda device=device: set_attributes(device, 0, MOUNT_ATTR_NODEV))
        for mine in (scratch, inside, "/dev/shm"):
            set_attributes(mine, 0, MOUNT_ATTR_RDONLY)
        kept, beneath = (os.open(mine, os.O_PATH) for mine in (scratch, inside))
        self._inside = f"/proc/self/fd/{beneath}"  # its parent folder will be covered by an overlay
        os.mkdir(f"{self._inside}/empty")
        for folder in self._folders(points, own):
            self._cover(folder)
        for folder in own:
            self._over(folder, lower[folder])
        mount(f"/proc/self/fd/{kept}", scratch, None, MS_BIND)
        for number in (kept, beneath, *lower.values()):
            os.close(number)
        os.chdir(cwd)

    def _folders(self, points: list[str], own: list[str]) -> Iterator[str]:
        """All mounted folders without a mount below them. Single sockets are cut off here."""
        above = {"/"}
        for point in points:
            while (point := os.path.dirname(point)) not in above:
                above.add(point)
        left = ["/"]
        while left:
            folder = left.pop()
            if folder in SYSTEM or folder in own:
                continue
            if folder not in above:
                yield folder
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                        elif _speaks(entry.stat(follow_symlinks=False).st_mode):
                            mount("/dev/null", entry.path, None, MS_BIND)
            except OSError:
                self.whole = False

    def _cover(self, folder: str) -> None:
        """Cover ``folder`` with an overlay, so that its sockets and pipes cannot be reached."""
        self._made += 1
        number = -1
        try:
            if self._made > OVERLAYS:
                raise OSError(f"more than {OVERLAYS} folders")
            number = os.open(folder, os.O_PATH)
            data = f"lowerdir=/proc/self/fd/{number}:{self._inside}/empty"
            mount("overlay", folder, "overlay", 0, data)
            set_attributes(folder, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0)
        except OSError:
            self.whole = False
        finally:
            if number >= 0:
                os.close(number)

    def _over(self, folder: str, lower: int) -> None:
        """Cover ``folder`` with a writable overlay; changes are kept in memory only."""
        self._made += 1
        upper, work = (f"{self._inside}/{self._made}/{name}" for name in ("upper", "work"))
        try:
            for made in (os.path.dirname(upper), upper, work):
                os.mkdir(made)
            there = os.stat(f"/proc/self/fd/{lower}")
            tried(lambda: os.chown(upper, there.st_uid, there.st_gid))
            os.chmod(upper, there.st_mode & 0o7777)
            data = f"lowerdir=/proc/self/fd/{lower},upperdir={upper},workdir={work}"
            if not tried(lambda: mount("overlay", folder, "overlay", 0, f"{data},userxattr")):
                mount("overlay", folder, "overlay", 0, data)
            set_attributes(folder, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0)
        except OSError:
            self.whole = False


def _lay_devices() -> list[str]:
    """Replace ``/dev`` with a private one. Returns the mounts that contain devices."""
    found = [path for name in DEVICES for path in glob.glob(f"/dev/{name}")]
    devices = {path: os.open(path, os.O_PATH) for path in found}
    folders = {path for path in found if os.path.isdir(path)}
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=0755")
    for path, number in devices.items():
        if path in folders:
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        mount(f"/proc/self/fd/{number}", path, None, MS_BIND | MS_REC)
        os.close(number)
    for name, target in LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"/dev/{name}")
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID, "mode=1777")
    if tried(lambda: mount("devpts", "/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=0666")):
        found.append("/dev/pts")
    return found


def _speaks(mode: int) -> bool:
    return stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _apart(folders: list[str], points: list[str]) -> list[str]:
    """Real paths of ``folders``, none below another.

    Leaves out folders with a mount below them, because that mount would vanish.
    """
    real = sorted({os.path.realpath(folder) for folder in folders if os.path.isdir(folder)})
    apart: list[str] = []
    for folder in real:
        below = folder.rstrip(os.sep) + os.sep
        if not any(folder.startswith(other + os.sep) for other in apart) and not any(
            point.startswith(below) for point in points
        ):
            apart.append(folder)
    return apart


def _mount_points() -> list[str]:
    with open("/proc/self/mountinfo", "rb") as lines:
        points = [line.split()[4] for line in lines]
    return [os.fsdecode(re.sub(rb"\\([0-7]{3})", _octal, point)) for point in points]


def _octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])
