"""OpenAI embeddings: ``POST …/embeddings``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import Generic, InputMessage, Part
from playhead_genai.providers.dialect import Plain, ResponseContent, tokens
from playhead_genai.providers.openai.common import content_parts
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
from playhead_semconv.values import GenAiOperationName

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "prompt_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "prompt_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "prompt_tokens_details", "image_tokens"),
)


class OpenAIEmbeddings(Plain):
    """OpenAI embeddings: ``POST …/embeddings``."""

    wire = "openai.embeddings"
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "input"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none(
            {
                a.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                a.GEN_AI_REQUEST_ENCODING_FORMATS: strings(request.get("encoding_format")),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("dimensions")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for one input: a text, or an array of token numbers."""
        parts: list[Part]
        if isinstance(item, list):
            parts = [Generic(type="tokens", extras={"tokens": item})]
        else:
            parts = content_parts(item)
        return InputMessage(role="user", parts=parts)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: model, usage, and the dimension if the request lacks it."""
        found = without_none(
            {
                a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("dimensions"))
                or _dimension(body),
            }
        )
        return ResponseContent(attributes=found | tokens(mapping(body.get("usage")), _USAGE))


def _dimension(body: Object) -> int | None:
    """Return the length of the first vector: an array of numbers, or base64 of 32-bit floats."""
    first = next(iter(sequence(body.get("data"))), None)
    vector = mapping(first).get("embedding")
    if isinstance(vector, str):
        return len(vector.rstrip("=")) * 3 // 4 // 4 or None
    return len(sequence(vector)) or None
