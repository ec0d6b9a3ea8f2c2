"""Changes of files and folders: as the tape holds them, and made again."""

from __future__ import annotations

import os
import stat
from typing import Final, Literal, TypeAlias

import msgspec

What: TypeAlias = Literal["folder", "written", "mode", "link", "deleted"]


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One change in the workspace. Encoded on the tape as MessagePack."""

    path: str
    """The name of the file or folder, see `Names`."""
    what: What
    st_mode: int = 0
    """Type and permissions, as `os.stat` gives them."""
    data: bytes | None = None
    """The content that was written, if it is not too large; for a link, its target."""
    digest: bytes = b""
    """BLAKE3 digest of the content that was written."""
    size: int = 0
    mtime_ns: int = 0


encode_changes: Final = msgspec.msgpack.Encoder().encode
decode_changes: Final = msgspec.msgpack.Decoder(list[Change]).decode


def make(change: Change, path: str) -> None:
    """Make the same change at ``path``. Raises `OSError`."""
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    if change.what == "mode":
        if not os.path.islink(path):
            os.chmod(path, stat.S_IMODE(change.st_mode))
        return
    if change.what == "folder":
        if not is_folder:
            _remove(path)
            os.makedirs(path, exist_ok=True)
        os.chmod(path, stat.S_IMODE(change.st_mode) | stat.S_IRWXU)
        return
    _remove(path)
    if change.what == "deleted":
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if change.what == "link":
        os.symlink(os.fsdecode(change.data or b""), path)
        return
    if change.data is None:
        with open(path, "wb") as file:
            file.truncate(change.size)
    else:
        with open(path, "wb") as file:
            file.write(change.data)
    os.chmod(path, stat.S_IMODE(change.st_mode))
    os.utime(path, ns=(change.mtime_ns, change.mtime_ns))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)
