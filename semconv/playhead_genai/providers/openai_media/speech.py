"""OpenAI's speech: ``POST …/audio/speech``. The answer is audio, or a stream of events with audio."""

from __future__ import annotations

import base64
from typing import Any

from playhead_core.facts import Value
from playhead_genai.messages import Blob, FinishReason, InputMessage, OutputMessage, Part, audio_type
from playhead_genai.providers.dialect import Plain, ResponseContent, tokens
from playhead_genai.providers.openai.common import content_parts, sampling
from playhead_genai.providers.reading import Object, mapping, rest, text
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "input_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
)


class OpenAISpeech(Plain):
    """OpenAI's speech: ``POST …/audio/speech``. The response is audio or a stream of events."""

    wire = "openai.speech"
    operation = GenAiOperationName.GENERATE_CONTENT
    messages_field = "input"
    instructions_field = "instructions"

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return sampling(request) | {a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.SPEECH}

    def message(self, item: Any) -> InputMessage:
        """Return the message for the text that is to be spoken."""
        return InputMessage(role="user", parts=content_parts(item))

    def instructions(self, value: Any) -> list[Part]:
        """Return the parts for ``instructions``: how it is to be spoken."""
        return content_parts(value)

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the body for an answer of audio."""
        if "json" in kind:
            return None
        return {"audio": base64.b64encode(data).decode(), "content_type": kind}

    def fold(self) -> SpeechFold:
        """Return a new fold for a stream."""
        return SpeechFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message of audio."""
        data = text(body.get("audio"))
        kind = text(body.get("content_type"))
        if kind is None or not kind.startswith("audio/"):
            kind = audio_type(text(request.get("response_format")) or "mp3")
        messages = (
            [
                OutputMessage(
                    role="assistant", parts=[Blob(mime_type=kind, modality="audio", content=data)]
                )
            ]
            if data
            else []
        )
        return ResponseContent(
            messages,
            [FinishReason.ERROR] if cut_short and messages else [],
            tokens(mapping(body.get("usage")), _USAGE),
        )


class SpeechFold:
    """Joins the events of a stream into an answer with audio."""

    def __init__(self) -> None:
        self._audio: list[bytes] = []
        self._body: Object = {}
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        if kind == "speech.audio.delta":
            self._audio.append(_bytes(value.get("audio")))
        elif kind == "speech.audio.done":
            self._body["usage"] = value.get("usage")
            self._ended = True
        elif kind == "error":
            self._body["error"] = value.get("error") or rest(value, "type")

    def done(self) -> None:
        """No-op."""

    def ended(self, whole: bool) -> bool:
        """Whether the last event was received."""
        return self._ended

    def body(self) -> Object:
        """Return the body so far."""
        return self._body | {"audio": base64.b64encode(b"".join(self._audio)).decode()}


def _bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(text(data) or "")
    except ValueError:
        return b""
