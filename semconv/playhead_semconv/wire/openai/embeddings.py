"""OpenAI embeddings: ``POST …/embeddings``.

The texts are the input messages; the vectors are no messages and stay in the exchange.
"""

from __future__ import annotations

from typing import Any

from playhead_semconv import attributes as names
from playhead_semconv.facts import Value
from playhead_semconv.genai.messages import Generic, InputMessage, Part, ToolDefinition
from playhead_semconv.values import GenAiOperationName
from playhead_semconv.wire.dialect import Answer, tokens
from playhead_semconv.wire.openai.common import content_parts
from playhead_semconv.wire.reading import Object, given, integer, mapping, sequence, strings, text

_USAGE = (
    (names.GEN_AI_USAGE_INPUT_TOKENS, "", "prompt_tokens"),
    (names.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "prompt_tokens_details", "text_tokens"),
    (names.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "prompt_tokens_details", "image_tokens"),
)


class OpenAIEmbeddings:
    """The dialect."""

    wire = "openai.embeddings"
    operation = GenAiOperationName.EMBEDDINGS
    messages_field = "input"
    instructions_field = ""
    tools_fields = ()

    def parameters(self, request: Object) -> dict[str, Value]:
        """Attributes for the request's fields."""
        return given(
            {
                names.GEN_AI_REQUEST_MODEL: text(request.get("model")),
                names.GEN_AI_REQUEST_ENCODING_FORMATS: strings(request.get("encoding_format")),
                names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("dimensions")),
            }
        )

    def message(self, item: Any) -> InputMessage:
        """The message for one input: a text, or an array of token numbers."""
        parts: list[Part]
        if isinstance(item, list):
            parts = [Generic(type="tokens", extras={"tokens": item})]
        else:
            parts = content_parts(item)
        return InputMessage(role="user", parts=parts)

    def instructions(self, value: Any) -> list[Part]:
        """There are none."""
        return []

    def tool(self, item: Any) -> ToolDefinition:
        """There are none."""
        return ToolDefinition(type="function", name="")

    def fold(self) -> _NoStream:
        """Embeddings are not streamed."""
        return _NoStream()

    def answer(self, body: Object, request: Object, cut_short: bool) -> Answer:
        """What ``body`` says: model, usage, and the dimension if the request did not give it."""
        found = given(
            {
                names.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
                names.GEN_AI_EMBEDDINGS_DIMENSION_COUNT: integer(request.get("dimensions"))
                or _dimension(body),
            }
        )
        return Answer(attributes=found | tokens(mapping(body.get("usage")), _USAGE))


def _dimension(body: Object) -> int | None:
    """Length of the first vector: an array of numbers, or base64 of 32-bit floats."""
    first = next(iter(sequence(body.get("data"))), None)
    vector = mapping(first).get("embedding")
    if isinstance(vector, str):
        return len(vector.rstrip("=")) * 3 // 4 // 4 or None
    return len(sequence(vector)) or None


class _NoStream:
    """Keeps the last event, should a server stream all the same."""

    def __init__(self) -> None:
        self._body: Object = {}

    def event(self, name: str, value: Object) -> None:
        """The next event."""
        self._body = value

    def done(self) -> None:
        """``[DONE]`` has come."""

    def ended(self, whole: bool) -> bool:
        """The body is whole."""
        return whole

    def body(self) -> Object:
        """The last event."""
        return self._body
