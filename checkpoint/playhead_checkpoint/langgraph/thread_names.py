"""Names of LangGraph threads in the store: thread id and namespace as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from blake3 import blake3

from playhead_checkpoint.store.engine import LONGEST_THREAD

ANY_THREAD = "["
"""Start of the names of all threads."""


def thread_name(thread_id: str, namespace: str) -> str:
    """Return the name of a thread: both parts, or their digests if they are too long for the store.

    A digest is a JSON object, so it never equals the id of another thread, which is text.
    """
    if len(thread_id) + len(namespace) > LONGEST_THREAD:
        return _digests(thread_id, namespace)
    return _short_name(thread_id, namespace)


@lru_cache(maxsize=128)
def _short_name(thread_id: str, namespace: str) -> str:
    name = json.dumps([thread_id, namespace])
    return name if len(name) <= LONGEST_THREAD else _digests(thread_id, namespace)


def _digests(*parts: str) -> str:
    return json.dumps([{"blake3": blake3(json.dumps(part).encode()).hexdigest()} for part in parts])


def name_starts(thread_id: str) -> Sequence[str]:
    """Return the prefixes of all names of a thread, for any namespace."""
    starts = [f"{json.dumps([thread_id])[:-1]},", f"{_digests(thread_id)[:-1]},"]
    return [start for start in starts if len(start) < LONGEST_THREAD]


@lru_cache(maxsize=128)
def thread_parts(thread: str) -> Sequence[Any]:
    """Return thread id and namespace, or their digests; empty if LangGraph did not make the thread."""
    try:
        parts = json.loads(thread)
    except ValueError:
        return []
    return cast(Sequence[Any], parts) if isinstance(parts, list) and len(cast(Any, parts)) == 2 else []
