"""Reads states of checkpoints in the encodings of senders without a client of playhead."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from playhead_core.errors import UsageError

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
MSGPACK: Final = ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")


def read_state(body: bytes, media_type: str) -> Any:
    """Return the state in a body: types but JSON and MessagePack stay bytes. `UsageError`."""
    kind = media_type.partition(";")[0].strip().lower()
    try:
        if kind == JSON:
            return msgspec.json.decode(body)
        return msgspec.msgpack.decode(body) if kind in MSGPACK else body
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise UsageError(f"the body is not {kind}", cause=str(problem)[:300]) from None
