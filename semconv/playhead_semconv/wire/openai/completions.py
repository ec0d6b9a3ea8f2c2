"""OpenAI's text completions, ``POST …/completions``: vLLM, Together, Fireworks and others have them."""

from __future__ import annotations

from typing import Any

from playhead_semconv import attributes as a
from playhead_semconv.facts import Value
from playhead_semconv.genai.messages import InputMessage, OutputMessage, Text
from playhead_semconv.values import GenAiOperationName
from playhead_semconv.wire.dialect import ResponseContent
from playhead_semconv.wire.merging import Pieces, settled
from playhead_semconv.wire.openai.chat import OpenAIChat
from playhead_semconv.wire.reading import Object, integer, mapping, rest, sequence, text


class OpenAICompletions(OpenAIChat):
    """The dialect."""

    wire = "openai.completions"
    operation = GenAiOperationName.TEXT_COMPLETION
    messages_field = "prompt"
    tools_fields = ()

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields: those of a chat."""
        found = super().parameters(request)
        return {name: value for name, value in found.items() if name != a.OPENAI_API_TYPE}

    def message(self, item: Any) -> InputMessage:
        """Return the message for one prompt."""
        return InputMessage(
            role="user", parts=[Text(content=item)] if isinstance(item, str) and item else []
        )

    def fold(self) -> CompletionFold:
        """Return a new fold for a stream."""
        return CompletionFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per choice."""
        found = super().answer(body, request, cut_short)
        texts = (text(mapping(choice).get("text")) for choice in sequence(body.get("choices")))
        found.messages = [
            OutputMessage(role="assistant", parts=[Text(content=one)] if one else []) for one in texts
        ]
        return found


class CompletionFold:
    """Joins chunks into a completion. It ends with ``[DONE]``, else when every choice has ended."""

    def __init__(self) -> None:
        self._done = False
        self._body: Object = {}
        self._choices: dict[int, Object] = {}

    def event(self, name: str, value: Object) -> None:
        """Add the next chunk."""
        self._body |= rest(value, "choices")
        for item in sequence(value.get("choices")):
            choice = mapping(item)
            index = integer(choice.get("index")) or 0
            have = self._choices.setdefault(index, {"text": Pieces()})
            have["text"].append(text(choice.get("text")) or "")
            if reason := text(choice.get("finish_reason")):
                have["finish_reason"] = reason

    def done(self) -> None:
        """``[DONE]`` was received."""
        self._done = True

    def ended(self, whole: bool) -> bool:
        """Whether ``[DONE]`` was received, or the body is complete and every begun choice has ended."""
        found = self._choices.values()
        return self._done or (whole and bool(found) and all("finish_reason" in one for one in found))

    def body(self) -> Object:
        """Return the completion so far."""
        found = [self._choices[index] for index in sorted(self._choices)]
        return self._body | ({"choices": settled(found)} if found else {})
