"""Headers for a recorded request that is sent again: the user supplies what the tape withholds.

>>> with_headers(["authorization", "[redacted]", "accept", "*/*"], {"Authorization": "Bearer x"})
['authorization', 'Bearer x', 'accept', '*/*']
>>> withheld_headers(["authorization", "Bearer [redacted]", "accept", "*/*"])
['authorization']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from playhead_core.errors import UsageError

PLACEHOLDER = "[redacted]"
"""Replaces a credential on the tape."""


def parse_headers(lines: Iterable[str]) -> dict[str, str]:
    """Parse headers from a command line, ``name: value``. Raises `UsageError`."""
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or "\n" in line or "\r" in line:
            raise UsageError(
                "--header takes a name and a value", hint="--header 'authorization: Bearer …'"
            )
        found[name.strip().lower()] = value.strip()
    return found


def with_headers(flat: Iterable[str], headers: Mapping[str, str]) -> list[str]:
    """Return name, value, name, value, … of a request; ``headers`` replace its own or are appended."""
    wanted = {name.lower(): value for name, value in headers.items()}
    words = [str(word) for word in flat]
    found: list[str] = []
    for name, value in zip(words[::2], words[1::2], strict=True):
        found += [name, wanted.get(name.lower(), value)]
    known = {name.lower() for name in words[::2]}
    for name, value in wanted.items():
        if name not in known:
            found += [name, value]
    return found


def withheld_headers(flat: Iterable[str]) -> list[str]:
    """Return the names of headers whose value the tape does not hold."""
    words = [str(word) for word in flat]
    return [name for name, value in zip(words[::2], words[1::2], strict=False) if PLACEHOLDER in value]


def write_headers(headers: Mapping[str, str]) -> bytes:
    """Return headers as JSON."""
    return msgspec.json.encode(headers)


def read_headers(data: bytes) -> dict[str, str]:
    """The inverse of `write_headers`."""
    return msgspec.json.decode(data, type=dict[str, str])
