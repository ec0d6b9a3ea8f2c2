"""Snapshots of a run's working folder: how they are taken, stored on a tape, and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

ENTRY_POINT: Final = "playhead_workspace"
"""Entry point group of the functions that begin to take snapshots (`OpenWorkspace`)."""

Kind: TypeAlias = Literal["file", "link", "folder"]

Unkept: TypeAlias = Literal["", "large", "bytes", "changed", "unreadable", "content"]
"""Why a file stands in a snapshot without its content: it is over the limit of a file; the snapshot was
over its limit before it came to it; it changed each time that it was read; it could not be read; no
content is recorded."""


class FolderEntry(msgspec.Struct, frozen=True, array_like=True):
    """A file, link or folder below the working folder."""

    path: str
    """Relative, with ``/`` between the names."""
    kind: Kind = "file"
    mode: int = 0
    """Permissions, as ``st_mode & 0o7777``."""
    size: int = 0
    """Bytes, before credentials were replaced."""
    mtime_ns: int = 0
    digest: bytes = b""
    """BLAKE3 of the content as it is kept; empty if there is none."""
    target: str = ""
    """Of a link."""
    kept_bytes: int = 0
    """Bytes of the content as it is kept."""
    redacted: int = 0
    """How many credentials were replaced in the content."""
    unkept: Unkept = ""


class SnapshotChanges(msgspec.Struct, frozen=True, array_like=True):
    """Changes of a snapshot since the previous one. The first one has everything."""

    entries: list[FolderEntry]
    gone: list[str]
    """Paths that are there no more."""


class Snapshot(NamedTuple):
    """One look at the working folder."""

    changes: SnapshotChanges
    files: int
    """Number of all entries, changed or not."""
    size_bytes: int
    """Size of all files."""
    left_out: Sequence[str]
    """Why it is incomplete, as text; empty if it is complete."""


Keep: TypeAlias = Callable[[bytes], tuple[bytes, int, int] | None]
"""Keeps the content of a file; gives digest and size of what is kept, and the number of credentials that
were replaced. None: no content is recorded."""


class SnapshotTaker(Protocol):
    """Takes snapshots of one folder. One call at a time; never raises."""

    def take(self, keep: Keep, is_over: Callable[[], bool]) -> Snapshot:
        """Look at the folder. Only what has changed since the last call is read, and given to ``keep``.

        ``is_over``: asked between two files; the rest is left out where it is true.
        """
        ...


class OpenWorkspace(Protocol):
    """The entry point."""

    def __call__(self, folder: str, hidden: Sequence[str], limit_bytes: int) -> SnapshotTaker:
        """``folder``: absolute. ``hidden``: folders that are left out. ``limit_bytes``: of one file."""
        ...


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SnapshotChanges).decode


def encode_changes(changes: SnapshotChanges) -> bytes:
    """The body of a fact ``playhead.workspace``."""
    return _encode(changes)


def decode_changes(data: bytes) -> SnapshotChanges:
    """The inverse of `encode_changes`. ValueError for anything else."""
    try:
        return _decode(data)
    except msgspec.DecodeError as problem:
        raise ValueError(f"no changes of a workspace: {problem}") from problem
