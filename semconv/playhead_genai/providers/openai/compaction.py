"""Compaction of a conversation of OpenAI's Responses API: ``POST …/responses/compact``."""

from __future__ import annotations

import msgspec

from playhead_genai.messages import Compaction, FinishReason
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.openai.responses import OpenAIResponses
from playhead_genai.providers.reading import Object, mapping, sequence


class OpenAICompaction(OpenAIResponses):
    """The dialect."""

    wire = "openai.compaction"

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: the compaction, without the messages that it keeps."""
        output = sequence(body.get("output"))
        made = [item for item in output if "compaction" in str(mapping(item).get("type"))]
        found = super().answer(body | {"output": made}, request, cut_short)
        parts = [part for message in found.messages for part in message.parts]
        if any(isinstance(part, Compaction) for part in parts):
            return msgspec.structs.replace(found, finish_reasons=[FinishReason.COMPACTION])
        return found
