"""Anthropic's counting of tokens: ``POST …/v1/messages/count_tokens``.

A message is asked about and not made: no answer, no usage. The count stays in the exchange.
"""

from __future__ import annotations

from playhead_genai.providers.anthropic.messages import AnthropicMessages
from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.reading import Object


class AnthropicCountTokens(AnthropicMessages):
    """The dialect."""

    wire = "anthropic.count_tokens"
    operation = "count_tokens"

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return nothing: a count is no usage."""
        return ResponseContent()
