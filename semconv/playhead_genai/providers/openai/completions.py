"""OpenAI's text completions, ``POST …/completions``: vLLM, Together, Fireworks and others have them."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, OutputMessage, Text
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.merging import Pieces
from playhead_genai.providers.openai.chat import ChoicesFold, OpenAIChat
from playhead_genai.providers.reading import Object, mapping, sequence, text
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


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


class CompletionFold(ChoicesFold):
    """Joins chunks into a completion."""

    def extend(self, have: Object, choice: Object) -> None:
        """See `ChoicesFold.extend`."""
        have.setdefault("text", Pieces()).append(text(choice.get("text")) or "")
