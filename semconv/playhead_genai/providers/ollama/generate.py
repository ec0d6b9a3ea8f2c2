"""Ollama's text completion: ``POST …/api/generate``."""

from __future__ import annotations

from typing import Any

from playhead_genai.messages import InputMessage, OutputMessage, Part, Text
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.ollama.chat import OllamaDialect, ended_answer, parts_of
from playhead_genai.providers.reading import Object
from playhead_semconv.values import GenAiOperationName


class OllamaGenerate(OllamaDialect):
    """The dialect."""

    wire = "ollama.generate"
    operation = GenAiOperationName.TEXT_COMPLETION
    messages_field = "prompt"
    instructions_field = "system"

    def message(self, item: Any) -> InputMessage:
        """Return the message for the prompt."""
        return InputMessage(role="user", parts=_text(item))

    def instructions(self, value: Any) -> list[Part]:
        """Return the part for ``system``."""
        return _text(value)

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message."""
        said = {"content": body.get("response"), "thinking": body.get("thinking")}
        parts = parts_of(said)
        messages = [OutputMessage(role="assistant", parts=parts)] if parts else []
        return ended_answer(body, messages, cut_short)


def _text(value: Any) -> list[Part]:
    return [Text(content=value)] if isinstance(value, str) and value else []
