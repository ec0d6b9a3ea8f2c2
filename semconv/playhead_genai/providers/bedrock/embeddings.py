"""Embeddings on Bedrock, Titan's and Cohere's: ``POST …/model/NAME/invoke``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, Part, Text
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.reading import Object, integer, mapping, sequence, strings, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName


class _Embeddings(Plain):
    provider = GenAiProviderName.AWS_BEDROCK
    operation = GenAiOperationName.EMBEDDINGS

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        forms = request.get("embeddingTypes", request.get("embedding_types"))
        size = request.get("dimensions", request.get("output_dimension"))
        return without_none(
            {
                a.GEN_AI_REQUEST_ENCODING_FORMATS: strings(forms),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(size),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: usage, and the dimension."""
        several = body.get("embeddings")
        if isinstance(several, dict):
            several = next(iter(mapping(several).values()), None)
        first = next(iter(sequence(several)), None)
        size = len(sequence(body.get("embedding"))) or len(sequence(first))
        found = without_none(
            {
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: size or None,
                a.GEN_AI_USAGE_INPUT_TOKENS: integer(body.get("inputTextTokenCount")),
            }
        )
        return ResponseContent(attributes=found)


class TitanEmbeddings(_Embeddings):
    """Titan's embeddings on Bedrock: ``POST …/model/NAME/invoke``."""

    wire = "bedrock.titan_embeddings"
    messages_field = "inputText"


class CohereEmbeddings(_Embeddings):
    """Cohere's embeddings on Bedrock: ``POST …/model/NAME/invoke``."""

    wire = "bedrock.cohere_embeddings"
    messages_field = "texts"
