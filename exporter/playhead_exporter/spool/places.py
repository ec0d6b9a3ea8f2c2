"""Where a spool lies: folders, file names, permissions.

::

    <spool>/                        0700, kept
        <instance>/                 32 hex digits, one per process instance
            owner                   locked as long as that process lives
            00000001.tape           segment: the copy of a head on disk
            cursor                  up to where it is delivered
        rejected/                   what an endpoint refused for good, with the reason
        endpoint                    whether the endpoint is a playhead receiver, as last told
    <shared memory>/playhead-<uid>/<digest of the spool's path>/
        <instance>/
            owner
            copied                  the instance has its folder in the spool: without it these are stale
            00000001.head           segment that is being written, mapped

Without shared memory the heads lie in the spool's own instance folders.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from playhead_semconv.facts import digest_of
from playhead_semconv.settings import Settings

SHARED_MEMORY = Path("/dev/shm")
OWNER = "owner"
COPIED = "copied"
CURSOR = "cursor"
REJECTED = "rejected"
ENDPOINT = "endpoint"
FOLDER_MODE = 0o700
FILE_MODE = 0o600

_INSTANCE = re.compile(r"[0-9a-f]{32}\Z")
_SEGMENT = re.compile(r"([0-9]{8,})\.(?:tape|head)\Z")


def default_spool() -> Path:
    """The user's state folder, playhead/spool."""
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "playhead" / "spool"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one spool."""

    spool: Path
    shared: Path | None
    """Folder of the heads in shared memory; None where there is none."""

    @classmethod
    def of(cls, settings: Settings, shared_memory: Path | None = SHARED_MEMORY) -> Places:
        """Where the spool of these settings lies. Touches no disk but shared memory."""
        spool = Path(settings.spool_dir).expanduser() if settings.spool_dir else default_spool()
        spool = Path(os.path.abspath(spool))
        shared = (
            None if shared_memory is None else _own_folder(shared_memory / f"playhead-{os.getuid()}")
        )
        if shared is not None:
            shared = shared / digest_of(os.fsencode(spool)).hex()[:16]
        return cls(spool, shared)

    def home(self, instance: bytes) -> Path:
        """Folder of an instance's segments on disk."""
        return self.spool / instance.hex()

    def heads(self, instance: bytes) -> Path:
        """Folder of an instance's heads."""
        return (self.shared or self.spool) / instance.hex()

    def tie(self, instance: bytes) -> None:
        """An instance has its folder in the spool: whoever deletes that deletes its heads. OSError."""
        if self.heads(instance) != self.home(instance):
            path = self.heads(instance) / COPIED
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))

    def stale(self, instance: bytes) -> bool:
        """Whether its heads have outlived its folder in the spool, which somebody has deleted."""
        if not (self.heads(instance) / COPIED).exists():
            return False
        try:
            self.home(instance).stat()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return False

    def instances(self) -> list[bytes]:
        """Instances that have left something in this spool, dead or alive, in no particular order."""
        found: set[str] = set()
        for folder in (self.spool, self.shared):
            if folder is not None and folder.is_dir():
                found |= {name for name in os.listdir(folder) if _INSTANCE.match(name)}
        return [bytes.fromhex(name) for name in sorted(found)]


def make_folder(folder: Path) -> None:
    """Make ``folder`` and what is missing above it, readable by the user alone."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def remove_file(path: Path) -> None:
    """Delete ``path``. What cannot be deleted is delivered once more by the next one, harmlessly."""
    with contextlib.suppress(OSError):
        path.unlink()


def remove_folder(folder: Path) -> None:
    """Delete an instance folder that holds no segments any more; one that does stays."""
    for name in (CURSOR, f"{CURSOR}.draft", COPIED, OWNER):
        remove_file(folder / name)
    with contextlib.suppress(OSError):
        folder.rmdir()


def segment_name(number: int, suffix: str) -> str:
    """``1``, ``tape`` → ``00000001.tape``."""
    return f"{number:08d}.{suffix}"


def segment_numbers(folder: Path, suffix: str) -> list[int]:
    """Numbers of the segments in ``folder``, ascending; empty if there is no such folder."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = (_SEGMENT.match(name) for name in names if name.endswith("." + suffix))
    return sorted(int(match[1]) for match in matches if match is not None)


def _own_folder(folder: Path) -> Path | None:
    """``folder`` if it is, or can be made, a folder of this user that nobody else can enter."""
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return None
    return folder if stat.S_IMODE(status.st_mode) == FOLDER_MODE else None
