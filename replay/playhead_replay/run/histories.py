"""Of calls that send a whole conversation again: what each adds to the one before it.

A call of a long conversation sends thousands of messages of which two are new. Reading them all for each
call takes the square of their number; those that the call before sent are left out before they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from playhead_semconv import attributes as a


class GrowingHistory:
    """The calls of one conversation, in their order."""

    def __init__(self) -> None:
        self._before: dict[str, bytes] = {}
        self._sent: dict[str, bytes] = {}
        self.goes_on = False
        """Whether the last call began with all that the one before it sent, and that was left out."""

    def begin(self) -> None:
        """The next call."""
        self._before, self._sent, self.goes_on = self._sent, {}, False

    def of_attributes(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Attributes of the call without the input messages of the call before."""
        said = attributes.get(a.GEN_AI_INPUT_MESSAGES)
        if not isinstance(said, str):
            return attributes
        added = self._added({a.GEN_AI_INPUT_MESSAGES: said.encode(errors="surrogatepass")})
        return {
            **attributes,
            **{name: array.decode(errors="surrogatepass") for name, array in added.items()},
        }

    def of_body(self, body: bytes) -> bytes:
        """A request without the items that its arrays share with those of the call before."""
        try:
            fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            return body
        arrays = {name: held for name, raw in fields.items() if (held := bytes(raw)).startswith(b"[")}
        added = {name: msgspec.Raw(array) for name, array in self._added(arrays).items()}
        return msgspec.json.encode({**fields, **added}) if added else body

    def _added(self, arrays: dict[str, bytes]) -> dict[str, bytes]:
        """Of JSON arrays, by name: those that go on, from where they do."""
        self._sent = arrays
        added = {
            name: b"[" + array[len(self._before[name]) :]
            for name, array in arrays.items()
            if name in self._before and _goes_on(self._before[name], array)
        }
        self.goes_on = bool(added)
        return added


def _goes_on(before: bytes, array: bytes) -> bool:
    """Whether a JSON array begins with all items of another, byte for byte, and has more."""
    end = len(before) - 1
    return array[end : end + 1] == b"," and before[end:] == b"]" and array.startswith(before[:end])
