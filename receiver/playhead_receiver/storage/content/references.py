"""Content that a span only refers to (``gen_ai.input.messages_ref``, …), read where that is allowed.

The sender of a span chooses what is read. Therefore only content in configured folders and buckets is
read, and only for the tenant of the data folder itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from playhead_core.errors import ConfigurationError, StoreUnavailable
from playhead_genai.providers import CONTENT_ATTRIBUTES
from playhead_receiver.storage.content.object_store import SCHEMES, Bucket

MOST_BYTES = 64 * 1024 * 1024
SUFFIX = "_ref"

DATABASE = ".sqlite"
"""What the name of every database file and log of a store has. They are never read.

A reader that closes one of them would drop the locks that this process has on it.
"""


class References:
    """Reads content below ``places``: folders, and prefixes in object stores (``s3://BUCKET/PREFIX``).

    `ConfigurationError` for a place that is neither, `StoreUnavailable` without the library for it.
    """

    def __init__(self, places: Iterable[str] = ()) -> None:
        self._folders: list[Path] = []
        self._buckets: list[Bucket] = []
        for place in filter(None, places):
            if place.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
                self._buckets.append(Bucket(place))
            elif Path(place).is_absolute():
                self._folders.append(Path(place).resolve())
            else:
                raise ConfigurationError(f"the folder of references {place} is not absolute")

    @classmethod
    def named(cls, text: str) -> References:
        """Make one from the text of a setting: places with ``:`` between them.

        >>> len(References.named("/var/lib/one:/var/lib/two")._folders)
        2
        """
        return cls(re.split(r":(?!//)", text))

    def resolved(self, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Content attributes that could be read, and the URIs of the others, both by attribute name."""
        found: dict[str, Any] = {}
        left: dict[str, str] = {}
        for name, uri in _referred(attributes):
            value = self._content(uri)
            if value is None:
                left[name] = uri
            else:
                found[name] = value
        return found, left

    def contents(self, attributes: Mapping[str, Any]) -> Iterator[bytes]:
        """The raw bytes of all referenced content that can be read."""
        if self._folders or self._buckets:
            for _, uri in _referred(attributes):
                data = self._read(uri)
                if data is not None:
                    yield data

    def _content(self, uri: str) -> list[Any] | None:
        data = self._read(uri)
        try:
            if data is None:
                return None
            if urlsplit(uri).path.endswith(".jsonl"):
                return [msgspec.json.decode(line) for line in data.split(b"\n") if line.strip()]
            found = msgspec.json.decode(data)
        except (ValueError, RecursionError):
            return None
        return cast(list[Any], found) if isinstance(found, list) else None

    def _read(self, uri: str) -> bytes | None:
        try:
            parts = urlsplit(uri)
            if parts.scheme in SCHEMES:
                bucket = next((one for one in self._buckets if one.holds(uri)), None)
                return None if bucket is None else bucket.read(uri, MOST_BYTES)
            if parts.scheme not in ("file", "") or parts.netloc not in ("", "localhost"):
                return None
            path = Path(unquote(parts.path)).resolve()
            if not any(path.is_relative_to(folder) for folder in self._folders):
                return None
            if DATABASE in path.name:
                return None
            if not path.is_file() or path.stat().st_size > MOST_BYTES:
                return None
            return path.read_bytes()
        except (OSError, ValueError, StoreUnavailable):
            return None


def _referred(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of content attributes that are stored elsewhere, each with its URI."""
    for name in CONTENT_ATTRIBUTES:
        uri = attributes.get(name + SUFFIX)
        if isinstance(uri, str) and name not in attributes:
            yield name, uri
