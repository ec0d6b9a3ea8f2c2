"""Cohere's embeddings, version 2: ``POST …/v2/embed``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, Part, Text
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.reading import (
    Object,
    integer,
    mapping,
    sequence,
    strings,
    text,
    without_none,
)
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName


class CohereEmbed(Plain):
    """Cohere's embeddings, version 2: ``POST …/v2/embed``."""

    wire = "cohere.embed"
    provider = GenAiProviderName.COHERE
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "texts"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_ENCODING_FORMATS: strings(request.get("embedding_types")),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("output_dimension")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: id, usage and dimension."""
        units = mapping(mapping(body.get("meta")).get("billed_units"))
        vectors = mapping(body.get("embeddings")).get("float")
        first = next(iter(sequence(vectors)), None)
        return ResponseContent(
            attributes=without_none(
                {
                    a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                    a.GEN_AI_USAGE_INPUT_TOKENS: integer(units.get("input_tokens")),
                    a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: len(sequence(first)) or None,
                }
            )
        )
