"""Ollama's embeddings: ``POST …/api/embed``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, Part, Text
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.reading import Object, given, integer, sequence, text
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


class OllamaEmbed(Plain):
    """The dialect."""

    wire = "ollama.embed"
    provider = "ollama"
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "input"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        size = integer(request.get("dimensions"))
        model = text(request.get("model"))
        return given({a.GEN_AI_REQUEST_MODEL: model, a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: size})

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: model, usage and dimension."""
        first = next(iter(sequence(body.get("embeddings"))), None)
        return ResponseContent(
            attributes=given(
                {
                    a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                    a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: len(sequence(first)) or None,
                    a.GEN_AI_USAGE_INPUT_TOKENS: integer(body.get("prompt_eval_count")),
                }
            )
        )
