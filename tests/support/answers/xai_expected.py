"""What the span of each call of xAI says, exactly, by the case of `support.answers.xai_answers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from support.answers.sdk_answers import Answers
from support.answers.sdk_expected import expected, of_the_answer, of_the_request
from support.answers.sdk_table import BEGUN, STREAMED, Sdk
from support.sdks.cases import MODEL

from playhead_genai.providers.xai.grpc import STATUSES
from playhead_semconv import attributes as a

CASES = (
    *("plain", "stream", "tools", "parallel", "schema", "refusal", "reasoning"),
    *("refused", "failed", "image", "again", "timeout", "cut", "malformed", "abandoned"),
    *("async", "async stream", "cancelled", "deferred", "picture", "malformed answer"),
    *("closed", "gone", "async timeout", "async cut", "async gone"),
)
"""In an order in which no call repeats one that failed: that would be its next attempt."""

PRINTED = """plain: Hi there
stream: ['Hi', ' there']
tools: [('weather', {'city': 'Oslo'})]
parallel: [[('weather', {'city': 'Oslo'}), ('weather', {'city': 'Rome'})]]
schema: {"city":"Oslo"}
refusal: I cannot
reasoning: ['Let me think', 'Hi', ' there']
refused: _InactiveRpcError
failed: _InactiveRpcError
image: Hi there
again: Hi there
timeout: _InactiveRpcError
cut: _MultiThreadedRendezvous
malformed: _MultiThreadedRendezvous
abandoned: Hi
async: Hi there
async stream: ['Hi', ' there']
cancelled: cancelled
deferred: Hi there
picture: https://x.test/made.png
malformed answer: _InactiveRpcError
closed: ['Hi', 'CANCELLED']
gone: ['Hi', 'Hi there', 'UNAVAILABLE']
async timeout: AioRpcError
async cut: AioRpcError
async gone: ['Hi', 'Hi there', 'UNAVAILABLE']
"""
"""What the program prints."""

INPUT_TOKENS, OUTPUT_TOKENS = 12 * 15, 5 * 15
"""Of the 15 answers that come whole."""

TOLD = {a.GEN_AI_RESPONSE_ID: "r-1", a.GEN_AI_RESPONSE_MODEL: MODEL}
XAI = Sdk(
    "xai:Xai",
    Answers(),
    provider="x_ai",
    asks={a.GEN_AI_REQUEST_TEMPERATURE: 0.7},
    told=TOLD,
    first=BEGUN,
)


@dataclass(frozen=True)
class XaiCall:
    """One call of a case."""

    like: str
    """The case whose attributes it has."""
    code: int | None = 0
    """Status; None: nobody has read it to its end."""
    error: str = ""
    """How the text of its error begins."""
    sends: int = 1
    """How often gRPC sends it; that is one call for the SDK and for the tape."""
    method: str = ""
    """Empty: that of a chat."""
    wire: str = ""

    @property
    def streamed(self) -> bool:
        return self.like in STREAMED

    def attributes(self, port: int, received: int) -> dict[str, Any]:
        """What its span says, but for what varies; ``received``: number of messages."""
        chat = "GetCompletionChunk" if self.streamed else "GetCompletion"
        service = "Image" if self.like == "picture" else "Chat"
        found = self._means(port) | {
            a.RPC_SYSTEM_NAME: "grpc",
            a.RPC_METHOD: f"xai_api.{service}/{self.method or chat}",
            a.PLAYHEAD_MESSAGES_SENT: 0,
            a.PLAYHEAD_MESSAGES_RECEIVED: received,
            a.PLAYHEAD_WIRE: self.wire or ("xai.chat_stream" if self.streamed else "xai.chat"),
        }
        return found if self.code is None else found | {a.RPC_RESPONSE_STATUS_CODE: STATUSES[self.code]}

    def _means(self, port: int) -> dict[str, Any]:
        asked, answered = of_the_request(XAI, "plain", port), of_the_answer(XAI, "plain")
        fetch = {
            a.GEN_AI_OPERATION_NAME: "fetch_response",
            **{name: asked[name] for name in (a.GEN_AI_PROVIDER_NAME, a.SERVER_ADDRESS, a.SERVER_PORT)},
        }
        if self.like == "begun":
            return asked | {a.GEN_AI_RESPONSE_ID: "d-1"}
        if self.like == "pending":
            return fetch
        if self.like == "fetched":
            return fetch | answered
        if self.like == "malformed answer":
            return asked | {a.ERROR_TYPE: "malformed_response"}
        if self.like == "picture":
            made = {"type": "uri", "modality": "image", "uri": "https://x.test/made.png"}
            del asked[a.GEN_AI_REQUEST_TEMPERATURE], answered[a.GEN_AI_RESPONSE_ID]
            del answered[a.GEN_AI_RESPONSE_FINISH_REASONS]
            return asked | {
                **answered,
                a.GEN_AI_OPERATION_NAME: "generate_content",
                a.GEN_AI_OUTPUT_TYPE: "image",
                a.GEN_AI_OUTPUT_MESSAGES: [{"role": "assistant", "parts": [made]}],
            }
        found = expected(XAI, self.like, port)
        return found | ({a.ERROR_TYPE: STATUSES[self.code]} if self.code else {})


LATE = XaiCall("timeout", 4, "DEADLINE_EXCEEDED: Deadline Exceeded")
CUT = XaiCall("cut", 14, "UNAVAILABLE: gone")
CLOSED = "CANCELLED: Stream removed (Channel closed!)"
GONE = [XaiCall("cut", 14, "UNAVAILABLE: "), XaiCall("plain", sends=2)]
FETCH = "GetDeferredCompletion", "xai.fetched_deferred"

CALLS = {
    "refused": [XaiCall("refused", 3, "INVALID_ARGUMENT: No")],
    "failed": [XaiCall("failed", 13, "INTERNAL: broken")],
    "again": [XaiCall("again", sends=2)],
    "timeout": [LATE],
    "cut": [CUT],
    "malformed": [XaiCall("malformed", 1, CLOSED)],
    "abandoned": [XaiCall("abandoned", None)],
    "cancelled": [XaiCall("cancelled", 1, "Locally cancelled by application!")],
    "deferred": [
        XaiCall("begun", method="StartDeferredCompletion", wire="xai.deferred"),
        XaiCall("pending", method=FETCH[0], wire=FETCH[1]),
        XaiCall("fetched", method=FETCH[0], wire=FETCH[1]),
    ],
    "picture": [XaiCall("picture", method="GenerateImage", wire="xai.images")],
    "malformed answer": [XaiCall("malformed answer", error="message 1: byte 2: ")],
    "closed": [XaiCall("cut", 1, CLOSED)],
    "gone": GONE,
    "async timeout": [LATE],
    "async cut": [CUT],
    "async gone": GONE,
}
"""The calls of a case, where they are not one that goes well."""


def calls(case: str) -> list[XaiCall]:
    """The calls of a case, in order."""
    return CALLS.get(case) or [XaiCall(case)]
