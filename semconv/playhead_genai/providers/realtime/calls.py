"""What one message of a connection is, and a call that is made of some."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import OutputMessage, called_in, to_json
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.reading import Object
from playhead_semconv import attributes as a


class SessionMessage(msgspec.Struct, frozen=True):
    """One message of a connection."""

    time_ns: int
    sent: bool
    """Whether the program sent it; else it was received."""
    value: Object | None
    """None: it is no JSON object."""


MALFORMED: Final = "malformed_response"
"""``error.type`` of an answer in the middle of which a message came that cannot be read."""


class RealtimeCall(msgspec.Struct):
    """One answer of the model, and what it answers."""

    started_ns: int
    ended_ns: int | None = None
    """None: the answer has not ended."""
    first_ns: int | None = None
    """When the first piece of the answer came."""
    attributes: dict[str, Value] = {}
    error_type: str = ""
    """Value of ``error.type``; empty: no error."""
    error_message: str = ""

    def at_host(self, provider: str) -> dict[str, Value]:
        """Return the attributes that follow from where it was asked, and from how it ended."""
        named: dict[str, Value] = {a.GEN_AI_PROVIDER_NAME: provider} if provider else {}
        return named | ({a.ERROR_TYPE: self.error_type} if self.error_type else {})

    def add(self, said: ResponseContent) -> None:
        """Add what the model said."""
        self.attributes |= said.attributes
        if said.finish_reasons:
            self.attributes[a.GEN_AI_RESPONSE_FINISH_REASONS] = [*said.finish_reasons]
        if said.messages:
            self.attributes[a.GEN_AI_OUTPUT_MESSAGES] = to_json(said.messages)
            self._called(said.messages)
        self.attributes[a.GEN_AI_REQUEST_STREAM] = True
        if self.first_ns is not None:
            waited_s = max(0, self.first_ns - self.started_ns) / 1e9
            self.attributes[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = waited_s

    def fail(self, kind: str, message: str) -> None:
        """Note an error, unless there was one before; ``kind``: value of ``error.type``."""
        if not self.error_type:
            self.error_type, self.error_message = kind, message

    def malformed(self) -> None:
        """A message came before the end of the answer, and cannot be read."""
        self.fail(MALFORMED, "a message is no JSON object")

    def cut(self, time_ns: int, error_type: str, error_message: str) -> None:
        """The connection ended before the answer did. An empty ``error_type``: the program left."""
        self.ended_ns = time_ns
        if error_type:
            self.fail(error_type, error_message)
        elif not self.error_type:
            self.attributes[a.PLAYHEAD_END_HOW] = "abandoned"

    def _called(self, messages: list[OutputMessage]) -> None:
        called = called_in(messages)
        if called:
            self.attributes[a.PLAYHEAD_TOOL_CALLED] = [*called]


class RealtimeFold(Protocol):
    """Joins the messages of one connection into calls. Never raises for an unknown shape."""

    def message(self, message: SessionMessage) -> None:
        """Add the next message."""
        ...

    def calls(self) -> list[RealtimeCall]:
        """Return the calls, in order; none where the messages are those of another wire."""
        ...
