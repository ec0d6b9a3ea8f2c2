"""xAI's deferred chat over gRPC: it is begun, and its answer is fetched until it is there."""

from __future__ import annotations

from playhead_genai.providers.reading import Object, mapping
from playhead_genai.providers.xai.chat import XaiChat, answered
from playhead_genai.providers.xai.grpc_messages import single
from playhead_genai.providers.xai.schema import DEFERRED
from playhead_semconv.values import GenAiOperationName


class XaiDeferred(XaiChat):
    """The dialect of ``StartDeferredCompletion``: its answer is an id."""

    wire = "xai.deferred"


class XaiFetchedDeferred(XaiChat):
    """The dialect of ``GetDeferredCompletion``, whose answer alone counts tokens."""

    wire = "xai.fetched_deferred"
    operation = GenAiOperationName.FETCH_RESPONSE
    answers = DEFERRED

    def unwrapped(self, body: bytes) -> bytes:
        """Return an object without fields: a request has an id."""
        return b"{}"

    def _body(self, said: list[Object]) -> Object:
        return answered(mapping(single(said).get("response")))
