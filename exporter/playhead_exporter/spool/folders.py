"""Layout of a spool (folders, file names, permissions) and its disk budget.

::

    <spool>/                        0700, never deleted
        <instance>/                 32 hex digits, one per process instance
            owner                   locked while that process lives; where its tape goes
            00000001.tape           segment: the copy of an active segment on disk
            cursor                  how far the tape is delivered
        rejected/                   what an endpoint refused permanently, with the reason
        endpoint                    whether the endpoint was a playhead receiver when last asked
    <shared memory>/playhead-<uid>/<digest of the spool's path>/
        <instance>/
            owner
            copied                  there is a folder in the spool too; if it is gone, these are stale
            00000001.head           an active segment: the segment that is being written, mapped
        <instance>.control          a command asks the process to accept commands (`control_request`)

Without shared memory the active segments are in the instance folders of the spool.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

import msgspec

from playhead_core.errors import ConfigurationError
from playhead_core.facts import digest_of
from playhead_core.process.own_descriptors import write_file
from playhead_core.settings import Settings
from playhead_exporter.delivery import Endpoint

SHARED_MEMORY = Path("/dev/shm")
OWNER = "owner"
COPIED = "copied"
CURSOR = "cursor"
REJECTED = "rejected"
ENDPOINT = "endpoint"
FOLDER_MODE = 0o700
COUNT_AGAIN_S = 2.0
"""Seconds after which `DiskBudget` measures the folder again."""

_INSTANCE = re.compile(r"[0-9a-f]{32}\Z")
_SEGMENT = re.compile(r"([0-9]{8,})\.(?:tape|head)\Z")


def default_spool() -> Path:
    """``playhead/spool`` in the state folder of the user."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "playhead" / "spool"


class SpoolFolders(msgspec.Struct, frozen=True):
    """The folders of one spool."""

    spool: Path
    shared: Path | None
    """Folder of the active segments in shared memory; None if there is no shared memory."""
    destination: str = ""
    """Where the tapes of this process go: a data folder and its store, or an endpoint."""
    also: tuple[str, ...] = ()
    """Destinations of other processes whose tapes this one delivers, too."""
    everything: bool = False
    """Whether this process delivers the tapes of all others, whatever their destination."""

    @classmethod
    def of(cls, settings: Settings, shared_memory: Path | None = SHARED_MEMORY) -> SpoolFolders:
        """The folders for these settings. Touches shared memory, but no disk."""
        spool = Path(settings.spool_dir).expanduser() if settings.spool_dir else default_spool()
        spool = Path(os.path.abspath(spool))
        shared = (
            None if shared_memory is None else _own_folder(shared_memory / f"playhead-{os.getuid()}")
        )
        if shared is not None:
            shared = shared / digest_of(os.fsencode(spool)).hex()[:16]
        return cls(spool, shared, settings.destination or address(settings))

    def delivers(self, destination: str) -> bool:
        """Whether this process delivers the tape of a dead one.

        ``destination``: of the dead process; empty if an earlier version left it, which named none.
        """
        return self.everything or destination in ("", self.destination, *self.also)

    def home(self, instance: bytes) -> Path:
        """Folder of the segments of an instance on disk."""
        return self.spool / instance.hex()

    def active_home(self, instance: bytes) -> Path:
        """Folder of the active segments of an instance."""
        return (self.shared or self.spool) / instance.hex()

    def tie(self, instance: bytes) -> None:
        """Tie the active segments to the folder in the spool: without it they are stale. OSError."""
        if self.active_home(instance) != self.home(instance):
            path = self.active_home(instance) / COPIED
            write_file(path, b"", 0)

    def stale(self, instance: bytes) -> bool:
        """Whether the folder in the spool was deleted, so its active segments must not be delivered."""
        if not (self.active_home(instance) / COPIED).exists():
            return False
        try:
            self.home(instance).stat()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    def instances(self) -> list[bytes]:
        """Instances with files in this spool, dead or alive, in no particular order."""
        found: set[str] = set()
        for folder in (self.spool, self.shared):
            if folder is not None and folder.is_dir():
                found |= {name for name in os.listdir(folder) if _INSTANCE.match(name)}
        return [bytes.fromhex(name) for name in sorted(found)]


def address(settings: Settings) -> str:
    """Return the default destination of a process: its endpoint."""
    try:
        return Endpoint.parse(settings.endpoint, settings.protocol).base
    except ConfigurationError:
        return settings.endpoint


REQUEST, REFUSAL = ".control", ".refused"
"""Suffixes of the files beside an instance folder: see `control_request`."""


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents, accessible to the user only."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def remove_file(path: str | Path) -> None:
    """Delete ``path`` if possible. If not, it will be delivered again, which is harmless."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def remove_folder(folder: Path) -> None:
    """Delete an instance folder, unless it still holds segments, and requests to its process."""
    for name in (CURSOR, f"{CURSOR}.draft", COPIED, OWNER):
        remove_file(folder / name)
    for suffix in (REQUEST, REFUSAL):
        remove_file(f"{folder}{suffix}")
    with contextlib.suppress(OSError):
        folder.rmdir()


def segment_name(number: int, suffix: str) -> str:
    """``1``, ``tape`` → ``00000001.tape``."""
    return f"{number:08d}.{suffix}"


def segment_numbers(folder: Path, suffix: str) -> list[int]:
    """Numbers of the segments in ``folder``, ascending; empty if the folder does not exist."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = (_SEGMENT.match(name) for name in names if name.endswith("." + suffix))
    return sorted(int(match[1]) for match in matches if match is not None)


def _own_folder(folder: Path) -> Path | None:
    """``folder``, created if missing, if only this user can access it; else None."""
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return None
    return folder if stat.S_IMODE(status.st_mode) == FOLDER_MODE else None


class DiskBudget:
    """Disk budget of one spool folder, shared by all processes that use the folder."""

    def __init__(self, spool: Path, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._spool = spool
        self._counted_at = 0.0
        self._spent = 0

    def allows(self, more_bytes: int) -> bool:
        """Whether ``more_bytes`` may be written. If so, they count as written."""
        now = time.monotonic()
        over = self._spent + more_bytes > self.limit_bytes
        if now - self._counted_at > COUNT_AGAIN_S or (over and now - self._counted_at > 0.1):
            self._spent = spent_bytes(self._spool)
            self._counted_at = time.monotonic()
            over = self._spent + more_bytes > self.limit_bytes
        if not over:
            self._spent += more_bytes
        return not over

    @property
    def spent_bytes(self) -> int:
        """Size of the folder at the last count, plus what this process has written since."""
        return self._spent


def spent_bytes(spool: Path) -> int:
    """Total size of all files below ``spool``."""
    total = 0
    for folder, _, names in os.walk(spool):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue  # delivered and deleted meanwhile
    return total
