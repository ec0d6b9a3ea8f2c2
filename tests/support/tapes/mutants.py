"""Damaged export requests, made from a seed: in bytes or JSON, before or after compression."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

import zstandard

PROTOBUF, JSON = "application/x-protobuf", "application/json"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": lambda body: gzip.compress(body, 1),
    "deflate": lambda body: zlib.compress(body, 1),
    "zstd": lambda body: zstandard.compress(body, 1),
}
STRANGE: list[Any] = [
    *(None, True, False, 0, -1, 1 << 31, 1 << 63, 1 << 64, -(1 << 63) - 1, 1.5, 1e308, -0.0),
    *("", "x", "NaN", "-Infinity", "1" * 5000, "\ud83d", "\0", "ab" * 16, "0" * 32, "é" * 300),
    *([], {}, [[]], [None], {"": ""}, {"key": 7}, {"stringValue": 1, "intValue": 2}),
]
NUMBERS = [b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\x80" * 12, b"\0", b"\x7f", b"\xff\xff\xff\xff\x0f"]


@dataclass(frozen=True)
class Mutant:
    """A request as it is sent."""

    signal: str
    kind: str
    encoding: str
    body: bytes


class Mutants:
    """Generator of mutants. ``bodies``: a valid request by signal, in binary form and in JSON."""

    def __init__(self, seed: int, bodies: Mapping[str, tuple[bytes, bytes]]) -> None:
        self._random = Random(seed)
        self._bodies = bodies
        self._signals = sorted(bodies)

    def next(self) -> Mutant:
        """The next mutant."""
        signal = self._random.choice(self._signals)
        binary, text = self._bodies[signal]
        if self._random.random() < 0.3:
            kind, body = JSON, self._damaged_json(text)
        else:
            kind, body = PROTOBUF, self._damaged(binary)
        encoding = self._random.choice(["", "", "", *PACK])
        body = PACK[encoding](body)
        if encoding and self._random.random() < 0.4:
            body = self._damaged(body)
        return Mutant(signal, kind, encoding, body)

    def _damaged(self, body: bytes) -> bytes:
        random, data = self._random, bytearray(body)
        for _ in range(random.randint(1, 5)):
            at = random.randint(0, len(data))
            size = random.randint(1, 60)
            match random.randrange(6):
                case 0 if at < len(data):
                    data[at] = random.randrange(256)
                case 1 if at < len(data):
                    data[at] ^= 1 << random.randrange(8)
                case 2:
                    del data[at : at + size]
                case 3:
                    data[at:at] = random.randbytes(size)
                case 4:
                    data[at:at] = data[at - size : at]
                case _:
                    data[at : at + random.randint(0, 3)] = random.choice(NUMBERS)
        return bytes(data[: random.randint(0, len(data))] if random.random() < 0.1 else data)

    def _damaged_json(self, text: bytes) -> bytes:
        random, found = self._random, json.loads(text)
        for _ in range(random.randint(1, 4)):
            places = list(_places(found))
            if not places:
                break
            holder, key = random.choice(places)
            match random.randrange(5):
                case 0 if isinstance(holder, dict):
                    holder[random.choice(["intValue", "value", "spans", "x"])] = holder.pop(key)
                case 1:
                    del holder[key]
                case 2 if isinstance(holder, list):
                    holder[key:key] = deepcopy(holder[:3])
                case 3:
                    holder[key] = json.loads('{"values": [' * 90 + "1" + "]}" * 90)
                case _:
                    holder[key] = deepcopy(random.choice(STRANGE))
        body = json.dumps(found).encode()
        return self._damaged(body) if random.random() < 0.3 else body


def _places(node: Any) -> Any:
    """Every value of a document, as its container and its key there."""
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node))
    for key, value in pairs:
        yield node, key
        if isinstance(value, (dict, list)):
            yield from _places(value)
