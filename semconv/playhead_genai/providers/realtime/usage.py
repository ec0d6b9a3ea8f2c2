"""What the calls over one WebSocket used, told while it goes on, from the few messages that say it.

The sum is that of the calls which `realtime.connection` finds when all is known.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import ClassVar, Protocol

from playhead_core.facts import Value
from playhead_core.untrusted.shown_text import whole_text
from playhead_genai.providers.dialect import tokens
from playhead_genai.providers.google.parts import camel, usage_of
from playhead_genai.providers.merging import updated_counts
from playhead_genai.providers.openai.responses import USAGE as RESPONSES_USAGE
from playhead_genai.providers.openai.responses_fold import ENDINGS
from playhead_genai.providers.reading import Object, integer, mapping, text, without_none
from playhead_genai.providers.realtime.calls import object_in
from playhead_genai.providers.realtime.connection import model_asked, realtime_wire
from playhead_genai.providers.realtime.openai_realtime import USAGE as REALTIME_USAGE
from playhead_semconv import attributes as a


class UsageReader(Protocol):
    """Reads the messages of one connection."""

    marks: ClassVar[tuple[bytes, ...]]
    """A message that has none of them in its bytes need not be read."""

    def message(self, sent: bool, value: Object) -> dict[str, Value]:
        """Return what was used since the last message that said it, with the model; empty: nothing."""
        ...


def usage_reader(url: str) -> UsageReader | None:
    """Return a reader for a WebSocket to ``url``; None if no model is asked over it."""
    wire = realtime_wire(url)
    if wire == "gemini.live":
        return _Gemini()
    if wire == "openai.realtime":
        return _OpenAI(model_asked(url), REALTIME_USAGE, ("response.done",))
    return _OpenAI(model_asked(url), RESPONSES_USAGE, ENDINGS) if wire else None


def used(reader: UsageReader, sent: bool, data: bytes) -> dict[str, Value]:
    """Return what a message says was used; ``sent``: whether the program sent it."""
    value = object_in(data)
    return {} if value is None else whole_text(reader.message(sent, value))


class _OpenAI:
    marks: ClassVar[tuple[bytes, ...]] = (b'"usage', b'"model"')

    def __init__(
        self, model: str, counts: Iterable[tuple[str, str, str]], endings: Container[str]
    ) -> None:
        self._model = model
        self._counts = counts
        self._endings = endings

    def message(self, sent: bool, value: Object) -> dict[str, Value]:
        if sent:
            return {}
        session, response = mapping(value.get("session")), mapping(value.get("response"))
        self._model = text(session.get("model")) or self._model
        if (text(value.get("type")) or "") not in self._endings:
            return {}
        found = tokens(mapping(response.get("usage")), self._counts)
        model = text(response.get("model")) or self._model
        return found and found | without_none({a.GEN_AI_RESPONSE_MODEL: model})


class _Gemini:
    """Counts of an answer replace earlier ones of the same answer."""

    marks: ClassVar[tuple[bytes, ...]] = (
        b"usage",
        b"setup",
        b"model",
        b"ranscription",
        b"omplete",
        b"nterrupted",
        b"tool",
    )
    """Parts of the names, in camel case and with underscores."""

    def __init__(self) -> None:
        self._model = ""
        self._said: Object = {}
        """The counts of an answer, as the messages say them."""
        self._known: dict[str, int] = {}
        self._over = False
        """Whether the answer that was counted last has ended."""

    def message(self, sent: bool, value: Object) -> dict[str, Value]:
        fields = camel(value)
        if sent:
            asked = text(mapping(fields.get("setup")).get("model"))
            self._model = (asked or self._model).rpartition("/")[2]
            return {}
        content = camel(fields.get("serverContent"))
        calls = "toolCall" in fields
        ends = calls or any(content.get(name) is True for name in ("turnComplete", "interrupted"))
        if self._over and (ends or content.get("modelTurn") or content.get("outputTranscription")):
            self._said, self._known, self._over = {}, {}, False
        self._over = self._over or ends
        said = camel(fields.get("usageMetadata"))
        if not said:
            return {}
        self._said = updated_counts(self._said, said)
        said = usage_of(self._said)
        before, self._known = self._known, {name: integer(count) or 0 for name, count in said.items()}
        found: dict[str, Value] = {
            name: count - before.get(name, 0) for name, count in self._known.items()
        }
        return found | without_none({a.GEN_AI_RESPONSE_MODEL: self._model})
