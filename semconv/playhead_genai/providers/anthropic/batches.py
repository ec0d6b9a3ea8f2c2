"""Anthropic's batches: ``POST …/v1/messages/batches``, ``GET …/BATCH`` and ``GET …/BATCH/results``.

Results may be fetched many times, so their usage is not counted.
"""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import InputMessage, OutputMessage
from playhead_genai.providers.anthropic.blocks import block_parts
from playhead_genai.providers.anthropic.messages import AnthropicMessages
from playhead_genai.providers.dialect import Plain, ResponseContent
from playhead_genai.providers.reading import Object, mapping, parse, sequence, text, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


class AnthropicBatch(Plain):
    """A new batch of Anthropic: ``POST …/v1/messages/batches``."""

    wire = "anthropic.batch"
    operation = "create_batch"
    messages_field = "requests"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the body with the model, if all of its requests name one."""
        try:
            asked = mapping(parse(body))
        except (ValueError, RecursionError):
            return body
        models = {
            text(mapping(mapping(one).get("params")).get("model"))
            for one in sequence(asked.get("requests"))
        }
        model = next(iter(models), None) if len(models) == 1 else None
        return body if model is None else msgspec.json.encode(asked | {"model": model})

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return the model."""
        return without_none({a.GEN_AI_REQUEST_MODEL: text(request.get("model"))})

    def message(self, item: Any) -> InputMessage:
        """Return the last message of one request, with its ``custom_id``."""
        asked = mapping(item)
        messages = sequence(mapping(asked.get("params")).get("messages"))
        last = mapping(messages[-1]) if messages else {}
        return InputMessage(
            role=text(last.get("role")) or "user",
            parts=block_parts(last.get("content")),
            extras=without_none({"custom_id": text(asked.get("custom_id"))}),
        )

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: the id of the batch."""
        return ResponseContent(attributes=without_none({a.GEN_AI_RESPONSE_ID: text(body.get("id"))}))


class AnthropicFetchedBatch(AnthropicBatch):
    """The status of a batch of Anthropic: ``GET …/v1/messages/batches/BATCH``."""

    wire = "anthropic.fetched_batch"
    operation = "fetch_batch"


class AnthropicBatchResults(AnthropicBatch):
    """The results of a batch of Anthropic: ``GET …/v1/messages/batches/BATCH/results``."""

    wire = "anthropic.batch_results"
    operation = GenAiOperationName.FETCH_RESPONSE

    def fold(self) -> ResultsFold:
        """Return a new fold for the lines of the answer."""
        return ResultsFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per request that was answered."""
        found = ResponseContent()
        for item in sequence(body.get("results")):
            result = mapping(mapping(item).get("result"))
            message = mapping(result.get("message"))
            said = AnthropicMessages().answer(message, {}, False)
            named = without_none({"custom_id": text(mapping(item).get("custom_id"))})
            for one in said.messages:
                found.messages.append(OutputMessage(role=one.role, parts=one.parts, extras=named))
            found.finish_reasons += said.finish_reasons
            if model := text(message.get("model")):
                found.attributes.setdefault(a.GEN_AI_RESPONSE_MODEL, model)
        return found


class ResultsFold:
    """Joins the lines of an answer: one a result."""

    def __init__(self) -> None:
        self._results: list[Object] = []
        self._error: Object = {}

    def event(self, name: str, value: Object) -> None:
        """Add the next line."""
        if "result" in value:
            self._results.append(value)
        elif "error" in value:
            self._error = {"error": value["error"]}

    def done(self) -> None:
        """No-op."""

    def ended(self, whole: bool) -> bool:
        """Whether the body is complete."""
        return whole

    def body(self) -> Object:
        """Return the results so far."""
        return {"results": self._results} | self._error
