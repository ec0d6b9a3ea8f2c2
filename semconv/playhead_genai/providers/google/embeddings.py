"""Gemini's embeddings: ``POST …/models/NAME:embedContent``, ``:batchEmbedContents``, ``:predict``.

The texts are the input messages; the vectors are not messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.google.parts import camel, content_parts, usage_of
from playhead_genai.providers.reading import Object, integer, mapping, sequence, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiProviderName


class _Embeddings(Plain):
    provider = GenAiProviderName.GCP_GEN_AI
    operation = GenAiOperationName.EMBEDDINGS

    def message(self, item: Any) -> InputMessage:
        """Return the message for one text: a content, a request with one, or an instance of Vertex."""
        value = mapping(item)
        if isinstance(value.get("content"), dict | str):
            item = value["content"]
        return InputMessage(role="user", parts=content_parts(item))

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: the dimension if the request lacks it, and usage."""
        vectors = [body.get("embedding"), *sequence(body.get("embeddings"))]
        predicted = [mapping(one).get("embeddings") for one in sequence(body.get("predictions"))]
        sizes = [len(sequence(mapping(one).get("values"))) for one in [*vectors, *predicted]]
        counts = [
            integer(camel(mapping(one).get("statistics")).get("tokenCount")) or 0 for one in predicted
        ]
        found = without_none(
            {
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: max(sizes, default=0) or None,
                a.GEN_AI_USAGE_INPUT_TOKENS: integer(sum(counts)) or None,
            }
        )
        return ResponseContent(attributes=found | usage_of(body.get("usageMetadata")))


class GeminiEmbedContent(_Embeddings):
    """Gemini's embeddings: ``POST …/models/NAME:embedContent``."""

    wire = "gemini.embed_content"
    messages_field = "content"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        fields = camel(request)
        size = fields.get("outputDimensionality")
        config = camel(fields.get("embedContentConfig"))
        return without_none(
            {
                a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(size)
                or integer(config.get("outputDimensionality"))
            }
        )


class GeminiBatchEmbedContents(_Embeddings):
    """Gemini's embeddings of several texts: ``POST …/models/NAME:batchEmbedContents``."""

    wire = "gemini.batch_embed_contents"
    messages_field = "requests"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return no attributes: each of the requests has its own parameters."""
        return {}


class VertexPredictEmbeddings(_Embeddings):
    """Embeddings of Vertex AI: ``POST …/models/NAME:predict``."""

    wire = "vertex.predict_embeddings"
    messages_field = "instances"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        size = camel(request.get("parameters")).get("outputDimensionality")
        return without_none({a.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(size)})
