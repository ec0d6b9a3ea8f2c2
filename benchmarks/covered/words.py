"""Words that occur nowhere else, by which a span shows what it holds."""

from __future__ import annotations

SYSTEM = "sentinelsystem"
ASKED = "sentinelasked"
HISTORY = "sentinelhistory"
"""In the arguments of an earlier call of a tool."""
RESULT = "sentinelresult"
DEFINED = "sentineldefined"
"""In the description of a tool."""
SCHEMA = "sentinelschema"
ANSWER = "sentinelanswer"
SECOND = "anothersentinel"
THOUGHT = "sentinelthought"
REFUSED = "sentinelrefused"
ARGUMENT = "sentinelargument"
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
INPUT, OUTPUT = 12345, 678
"""Counts of tokens."""


def cut(text: str) -> list[str]:
    """A word as a stream gives it, in four pieces: a third of it says nothing."""
    size = len(text) // 4
    return [text[:size], text[size : 2 * size], text[2 * size : 3 * size], text[3 * size :]]


BEGUN = "".join(cut(ANSWER)[:2])
"""What of the answer has come when a stream is cut or left."""
