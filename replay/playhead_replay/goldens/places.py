"""Where a golden lies: ``goldens/NAME.tape`` beside the test, or a name that follows from the test's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_replay.tape_files.tape_file import COMPRESSED, SUFFIX
from playhead_semconv.untrusted.safe_paths import inside

FOLDER = "goldens"
LONGEST = 80
"""Characters of a file's name; a longer one ends in a digest of the whole."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.=,+@-]+")


def safe(name: str) -> str:
    """A file's name that every file system takes.

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
    """The golden of that name, as seen from a test; packed where only that is there. `PathOutside`."""
    folder, file = test_file.parent / FOLDER, f"{name}{SUFFIX}"
    inside(folder, file)
    path = folder / file
    packed = path.with_name(path.name + COMPRESSED)
    return packed if packed.exists() and not path.exists() else path


def own_name(test_file: Path, test: str, parameters: Mapping[str, Any]) -> str:
    """The name of the golden of a test that names none: ``test_refund/test_order,order=81``."""
    words = [test, *(f"{key}={parameters[key]}" for key in sorted(parameters))]
    return f"{safe(test_file.stem)}/{safe(','.join(words))}"
