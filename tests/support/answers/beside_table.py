"""What a provider answers to each case of `support.sdks.beside`, and what the span of the call says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.sdks.cases import HELLO, MODEL
from support.servers.scripted import Gate, Reply, json_reply, sse_reply

from playhead_semconv import attributes as a

CASES = (
    *("plain", "refused", "failed", "again twice", "timeout", "cut answer", "malformed answer"),
    *("stream", "cut", "malformed", "abandoned"),
    *("async", "async stream", "cancelled answer", "cancelled"),
)
"""Cases of `support.sdks.cases` and those of a `Call`, in order."""
STREAMS = frozenset(("stream", "cut", "malformed", "abandoned", "async stream", "cancelled"))
"""Those that read an answer as it comes."""
WHOLE = frozenset(("plain", "again twice", "stream", "async", "async stream"))
"""Those that get a whole answer."""
BEGUN = STREAMS - WHOLE
"""Those that get its first part."""
ANSWERED = WHOLE | BEGUN | {"cut answer", "malformed answer"}

MALFORMED = "malformed_response"
CANCELLED = "asyncio.exceptions.CancelledError"


def failures(sdk: str, http: str, refused: str, failed: str, malformed: str) -> dict[str, str]:
    """``error.type`` by case. ``sdk``: where its exceptions are; ``http``: its HTTP library."""
    return {
        "refused": refused,
        "failed": failed,
        "timeout": f"{sdk}.APITimeoutError" if sdk else f"{http}.ReadTimeout",
        "cut answer": f"{sdk}.APIConnectionError" if sdk else f"{http}.RemoteProtocolError",
        "malformed answer": malformed,
        "cut": f"{http}.RemoteProtocolError",
        "malformed": MALFORMED,
        "cancelled answer": CANCELLED,
        "cancelled": CANCELLED,
    }


NO_JSON = "json.decoder.JSONDecodeError"
OPENAI = failures("openai", "httpx2", "invalid", "invalid", NO_JSON)
ANTHROPIC = failures("anthropic", "httpx2", "invalid", "invalid", NO_JSON)
GEMINI = failures("", "httpx2", "invalid", "invalid", MALFORMED)
COHERE = failures("", "httpx", "400", "500", MALFORMED)
OLLAMA = failures("", "httpx", "400", "500", NO_JSON)
HUGGING_FACE = failures("", "httpx2", "400", "500", MALFORMED) | {
    "timeout": "huggingface_hub.errors.InferenceTimeoutError"
}


def refusal(message: str, kind: str, status: int) -> Any:
    """Most providers."""
    return {"error": {"message": message, "type": kind, "code": None}}


def refusal_of_google(message: str, kind: str, status: int) -> Any:
    return {"error": {"message": message, "status": kind, "code": status}}


@dataclass(frozen=True)
class Row:
    """One call."""

    wire: str
    reply: Reply
    """A whole answer."""
    asks: Mapping[str, Any]
    """What the request alone says."""
    told: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a whole answer says, beside that."""
    events: tuple[bytes, ...] = ()
    """Of the stream of its API; empty: it has none."""
    begun: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the first part of a stream says, beside the request."""
    cut: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What half of an answer says."""
    fails: Mapping[str, str] = field(default_factory=lambda: OPENAI)
    """``error.type`` by case."""
    refusal: Callable[[str, str, int], Any] = refusal
    """Body of an error."""
    form: bool = False
    """Whether a request is a form with files."""
    always_streams: bool = False
    """Whether every answer is a stream."""
    reads_on: bool = False
    """Whether the SDK passes on what it cannot read."""
    begins: float = 0.5
    """Which part of its body is sent first, where its API has no stream."""
    without: frozenset[str] = frozenset()
    """Cases that the call does not have."""
    lead: Callable[[str], Reply] | None = None
    """What the provider answers to the request that its SDK sends before; from the server's URL."""

    @property
    def cases(self) -> list[str]:
        """Its cases, in order."""
        return [case for case in CASES if case not in self.without]

    @property
    def body(self) -> bytes:
        """The body of a whole answer."""
        return sent(self.reply)

    def error(self, status: int) -> Reply:
        """A request that is refused."""
        return json_reply(self.refusal("No", "invalid", status), status, {"retry-after-ms": "1"})

    def stream(self, *parts: bytes | Gate) -> Reply:
        """An answer that comes in these parts."""
        return sse_reply(parts) if self.events else self.reply.but(parts=parts, framing="chunked")

    def replies(self, case: str) -> list[Reply]:
        """What the provider answers."""
        at = int(len(self.body) * self.begins)
        first, *others = self.events or (self.body[:at], self.body[at:])
        if case == "refused":
            return [self.error(400)]
        if case == "failed":
            return [self.error(500)]
        if case == "again twice":
            return [self.error(429), self.error(500), self.reply]
        if case in ("timeout", "cancelled answer"):
            return [self.reply.but(before=Gate())]
        if case == "cut answer":
            return [self.reply.but(truncate_at=len(self.body) // 2)]
        if case == "malformed answer":
            return [self.reply.but(parts=[b"{broken"])]
        if case == "cut":
            return [self.stream(first, *others).but(truncate_at=len(first) + 3 * bool(self.events))]
        if case == "malformed":
            return [self.stream(first, b"data: {broken\n\n", *others)]
        if case in ("abandoned", "cancelled"):
            return [self.stream(first, Gate())]
        return [self.stream(first, *others) if case in STREAMS else self.reply]

    def expected(self, case: str, port: int) -> dict[str, Any]:
        """All attributes of its span, but those of its place on the tape and the time it took."""
        found = {**self.asks, a.SERVER_ADDRESS: "127.0.0.1", a.SERVER_PORT: port}
        if case in WHOLE or (case == "malformed" and self.reads_on):
            found |= self.told
        elif case in BEGUN:
            found |= self.begun
        elif case == "cut answer":
            found |= self.cut
        if self.streamed(case):
            found[a.GEN_AI_REQUEST_STREAM] = True
        if case in self.fails:
            found[a.ERROR_TYPE] = self.fails[case]
        if case == "abandoned":
            found[a.PLAYHEAD_END_HOW] = "abandoned"
        return found

    def streamed(self, case: str) -> bool:
        """Whether the answer is a stream of its API."""
        return (bool(self.events) and case in STREAMS) or (self.always_streams and case in ANSWERED)


def sent(reply: Reply) -> bytes:
    """The bytes of a body."""
    return b"".join(part for part in reply.parts if isinstance(part, bytes))


def asked(operation: str, *parts: Any, model: str = MODEL, **more: Any) -> dict[str, Any]:
    """What a request says. ``parts``: of its message; none: it has no message."""
    found = {a.GEN_AI_OPERATION_NAME: operation, **more}
    if model:
        found[a.GEN_AI_REQUEST_MODEL] = model
    if parts:
        found[a.GEN_AI_INPUT_MESSAGES] = [{"role": "user", "parts": list(parts)}]
    return found


def made(*parts: Any, whole: bool = True) -> dict[str, Any]:
    """What an answer says, in one message; where it is not whole, that it ended by an error."""
    found: dict[str, Any] = {a.GEN_AI_OUTPUT_MESSAGES: [{"role": "assistant", "parts": list(parts)}]}
    return found if whole else found | BROKEN


BROKEN = {a.GEN_AI_RESPONSE_FINISH_REASONS: ["error"]}
TEXT = {"type": "text", "content": HELLO}
USED = {a.GEN_AI_USAGE_INPUT_TOKENS: 3, a.GEN_AI_USAGE_OUTPUT_TOKENS: 4}


def blob(kind: str, data: str) -> dict[str, Any]:
    """A part that is a file. ``data``: in base64."""
    return {"type": "blob", "mime_type": kind, "modality": kind.partition("/")[0], "content": data}
