"""Hugging Face's embeddings: ``POST …/models/NAME/pipeline/feature-extraction``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, Part, Text
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.reading import Object, integer, parse, sequence, strings, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


class HuggingFaceFeatureExtraction(Plain):
    """Hugging Face's embeddings: ``POST …/models/NAME/pipeline/feature-extraction``."""

    wire = "hugging_face.feature_extraction"
    provider = "hugging_face"
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "inputs"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none(
            {
                a.GEN_AI_REQUEST_ENCODING_FORMATS: strings(request.get("encoding_format")),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("dimensions")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text."""
        parts: list[Part] = [Text(content=item)] if isinstance(item, str) and item else []
        return InputMessage(role="user", parts=parts)

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the body for an answer of vectors, which is an array."""
        try:
            vectors = parse(data)
        except (ValueError, RecursionError):
            return None
        return {"embeddings": vectors} if isinstance(vectors, list) else None

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: the dimension.

        There is a vector a text, or, of a model that does not pool, one a token.
        """
        first: Any = sequence(body.get("embeddings"))
        while first and isinstance(first[0], list):
            first = sequence(first[0])
        return ResponseContent(
            attributes=without_none({a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: len(first) or None})
        )
