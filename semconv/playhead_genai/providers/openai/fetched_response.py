"""A response of OpenAI that was made before and is fetched: ``GET …/responses/resp_…``."""

from __future__ import annotations

import msgspec

from playhead_genai.providers.dialect import ResponseContent
from playhead_genai.providers.openai.responses import OpenAIResponses
from playhead_genai.providers.reading import Object
from playhead_semconv.values import GenAiOperationName


class OpenAIFetchedResponse(OpenAIResponses):
    """The dialect."""

    wire = "openai.fetched_response"
    operation = GenAiOperationName.FETCH_RESPONSE

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``, with usage only of a response that was made in background.

        The call that made any other response has its usage. A background call has none: it returns
        before the model has answered. Readers count the fetches of one response once (`counted_key`).
        """
        found = super().answer(body, request, cut_short)
        if body.get("background") is True:
            return found
        told = {
            name: value
            for name, value in found.attributes.items()
            if not name.startswith("gen_ai.usage.")
        }
        return msgspec.structs.replace(found, attributes=told)
