"""OpenAI's moderation: ``POST …/moderations``. The verdicts are the output messages."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import Generic, InputMessage, OutputMessage
from playhead_genai.providers.dialect import Plain, ResponseContent, tokens
from playhead_genai.providers.openai.common import content_parts
from playhead_genai.providers.reading import Object, mapping, rest, sequence, text, without_none
from playhead_semconv import attributes as a

_USAGE = ((a.GEN_AI_USAGE_INPUT_TOKENS, "", "prompt_tokens"),)


class OpenAIModeration(Plain):
    """OpenAI's moderation: ``POST …/moderations``. The verdicts are the output messages."""

    wire = "openai.moderation"
    operation = "moderation"
    messages_field = "input"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return without_none({a.GEN_AI_REQUEST_MODEL: text(request.get("model"))})

    def message(self, item: Any) -> InputMessage:
        """Return the message for one input: a text, or an image."""
        return InputMessage(role="user", parts=content_parts([item] if isinstance(item, dict) else item))

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per verdict."""
        verdicts = [Generic(type="moderation", extras=_verdict(item)) for item in _results(body)]
        found = without_none(
            {
                a.GEN_AI_RESPONSE_ID: text(body.get("id")),
                a.GEN_AI_RESPONSE_MODEL: text(body.get("model")),
            }
        )
        return ResponseContent(
            [OutputMessage(role="assistant", parts=[verdict]) for verdict in verdicts],
            attributes=found | tokens(mapping(body.get("usage")), _USAGE),
        )


def _results(body: Object) -> list[Object]:
    return [mapping(item) for item in sequence(body.get("results"))]


def _verdict(result: Object) -> Object:
    """Return what a verdict says: which categories apply, and the score of each."""
    marks = mapping(result.get("categories"))
    applying = [name for name, applies in marks.items() if applies is True]
    return rest(result, "type", "categories", "category_applied_input_types") | {"categories": applying}
