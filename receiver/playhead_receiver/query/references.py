"""Content that a span only refers to (``gen_ai.input.messages_ref``, …), read where that is allowed.

Who sends a span says what is read, so only what lies in folders that were named is, and for the data
folder's own tenant alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from playhead_semconv.errors import ConfigurationError
from playhead_semconv.wire import CONTENT_ATTRIBUTES

MOST_BYTES = 64 * 1024 * 1024
SUFFIX = "_ref"


class References:
    """Reads what ``folders`` hold. `ConfigurationError` for one that is not absolute."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        named = [Path(folder) for folder in folders if folder]
        wrong = next((folder for folder in named if not folder.is_absolute()), None)
        if wrong is not None:
            raise ConfigurationError(f"the folder of references {wrong} is not absolute")
        self._folders = [folder.resolve() for folder in named]

    def resolved(self, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Content attributes that were read, and the URIs of those that were not, by attribute."""
        found: dict[str, Any] = {}
        left: dict[str, str] = {}
        for name in CONTENT_ATTRIBUTES:
            uri = attributes.get(name + SUFFIX)
            if not isinstance(uri, str) or name in attributes:
                continue
            value = self._read(uri)
            if value is None:
                left[name] = uri
            else:
                found[name] = value
        return found, left

    def _read(self, uri: str) -> list[Any] | None:
        try:
            parts = urlsplit(uri)
            if parts.scheme not in ("file", "") or parts.netloc not in ("", "localhost"):
                return None
            path = Path(unquote(parts.path)).resolve()
            if not any(path.is_relative_to(folder) for folder in self._folders):
                return None
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                return None
            data = path.read_bytes()
            if path.suffix == ".jsonl":
                return [msgspec.json.decode(line) for line in data.split(b"\n") if line.strip()]
            found = msgspec.json.decode(data)
        except (OSError, ValueError, RecursionError):
            return None
        return cast(list[Any], found) if isinstance(found, list) else None
