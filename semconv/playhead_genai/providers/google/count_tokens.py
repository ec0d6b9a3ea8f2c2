"""Gemini's counting of tokens: ``POST …/models/NAME:countTokens``.

Contents are asked about and not answered: no answer, no usage. The count stays in the exchange.
"""

from __future__ import annotations

import msgspec

from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.google.generate_content import GeminiGenerateContent
from playhead_genai.providers.reading import Object, mapping, parse


class GeminiCountTokens(GeminiGenerateContent):
    """The dialect."""

    wire = "gemini.count_tokens"
    operation = "count_tokens"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the request that is asked about, where it is inside of another."""
        try:
            asked = mapping(parse(body))
        except (ValueError, RecursionError):
            return body
        inner = mapping(asked.get("generateContentRequest"))
        return msgspec.json.encode(inner) if inner else body

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return nothing: a count is no usage."""
        return ResponseContent()
