"""OpenAI's transcription of speech: ``POST …/audio/transcriptions``, ``…/audio/translations``."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import (
    FinishReason,
    InputMessage,
    OutputMessage,
    Part,
    Text,
    audio_type,
    located,
)
from playhead_genai.providers.dialect import Plain, ResponseContent, tokens
from playhead_genai.providers.forms import files_in, form_of, typed
from playhead_genai.providers.openai.common import content_parts, sampling
from playhead_genai.providers.reading import Object, mapping, rest, sequence, text
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "input_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "input_token_details", "text_tokens"),
    (a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS, "input_token_details", "audio_tokens"),
)


class OpenAITranscription(Plain):
    """OpenAI's transcription and translation: ``POST …/audio/transcriptions``, ``…/translations``."""

    wire = "openai.transcription"
    operation = GenAiOperationName.GENERATE_CONTENT
    messages_field = "file"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the body: of a form, whose prompt is part of the message with the audio."""
        form = form_of(body)
        if form is None:
            return body
        parts: list[Object] = []
        for file in files_in(form.get("file")):
            kind = text(file.get("content_type")) or ""
            if not kind.startswith(("audio/", "video/")):
                kind = audio_type(str(file["filename"]).rpartition(".")[2]) or "audio/mpeg"
            parts.append({"type": "audio", "url": f"data:{kind};base64,{file['data']}"})
        if url := text(form.get("url")):
            parts.append({"type": "audio", "url": url})
        if prompt := text(form.get("prompt")):
            parts.append({"type": "text", "text": prompt})
        fields = typed(rest(form, "file", "url", "prompt"), "stream", "temperature")
        return msgspec.json.encode(fields | {"file": [parts]})

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        return sampling(request) | {a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.TEXT}

    def message(self, item: Any) -> InputMessage:
        """Return the message for the audio and the prompt that goes with it."""
        parts: list[Part] = []
        for one in sequence(item):
            url = text(mapping(one).get("url"))
            parts += [located(url, "audio", {})] if url else content_parts([one])
        return InputMessage(role="user", parts=parts)

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the body for an answer of plain text, or of subtitles."""
        return None if "json" in kind else {"text": data.decode("utf-8", "replace")}

    def fold(self) -> TranscriptionFold:
        """Return a new fold for a stream."""
        return TranscriptionFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message with what was said."""
        said = text(body.get("text"))
        message = OutputMessage(role="assistant", parts=[Text(content=said)] if said else [])
        return ResponseContent(
            [message] if said else [],
            [FinishReason.ERROR] if cut_short and said else [],
            tokens(mapping(body.get("usage")), _USAGE),
        )


class TranscriptionFold:
    """Joins the events of a stream into an answer."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._body: Object = {}
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        if kind == "transcript.text.delta":
            self._texts.append(text(value.get("delta")) or "")
        elif kind == "transcript.text.done":
            self._body |= rest(value, "type")
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
        return {"text": "".join(self._texts)} | self._body
