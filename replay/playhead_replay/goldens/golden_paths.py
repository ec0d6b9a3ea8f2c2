"""Where a golden lies: ``goldens/NAME.tape`` beside the test, or a name derived from the test's name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_core.file_names import inside
from playhead_replay.tape_files.tape_file import COMPRESSED, SUFFIX

FOLDER = "goldens"
OWN = ".playhead"
"""Folder beside a project's tests for what playhead puts there; it is in no repository."""
LONGEST = 80
"""Largest length of a file name in characters; a longer one is cut and ends in a digest of the whole."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.=,+@-]+")


def safe(name: str) -> str:
    """A file name that is valid on every file system.

    >>> safe("order=81/urgent")
    'order=81_urgent'
    """
    plain = _UNSAFE.sub("_", name).strip(".") or "_"
    if plain == name and len(plain) <= LONGEST:
        return plain
    digest = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return (
        plain
        if len(plain) <= LONGEST and plain.count("_") <= name.count("_") + 1
        else (f"{plain[: LONGEST - 9]}-{digest}")
    )


def place_of(test_file: Path, name: str) -> Path:
    """Path of the named golden of a test; the packed one if only that exists. `PathOutside`."""
    folder, file = test_file.parent / FOLDER, f"{name}{SUFFIX}"
    inside(folder, file)
    path = folder / file
    packed = path.with_name(path.name + COMPRESSED)
    return packed if packed.exists() and not path.exists() else path


def folder_of_failed(root: Path) -> Path:
    """The folder below ``root`` for the tapes of replays that failed; it is made, and git ignores it."""
    own = root / OWN
    folder = own / "failed"
    folder.mkdir(parents=True, exist_ok=True)
    ignore = own / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", "utf-8")
    return folder


def own_name(test_file: Path, test: str, parameters: Mapping[str, Any]) -> str:
    """Name of the golden if a test gives none: ``test_refund/test_order,order=81``."""
    words = [test, *(f"{key}={parameters[key]}" for key in sorted(parameters))]
    return f"{safe(test_file.stem)}/{safe(','.join(words))}"


def short(path: Path) -> str:
    """``path`` as a person types it here: relative if it is below this folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
