"""OpenAI's images: ``POST …/images/generations``, ``…/edits`` and ``…/variations``."""

from __future__ import annotations

from typing import Any

import msgspec

from playhead_core.facts import Value
from playhead_genai.messages import Blob, FinishReason, InputMessage, OutputMessage, Part, located
from playhead_genai.providers.dialect import Plain, ResponseContent, tokens
from playhead_genai.providers.forms import files_in, form_of, typed
from playhead_genai.providers.openai.common import content_parts, sampling
from playhead_genai.providers.reading import Object, integer, mapping, rest, sequence, text, without_none
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiOutputType

_USAGE = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, "", "input_tokens"),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, "", "output_tokens"),
    (a.GEN_AI_USAGE_TEXT_INPUT_TOKENS, "input_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS, "input_tokens_details", "image_tokens"),
    (a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS, "output_tokens_details", "text_tokens"),
    (a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS, "output_tokens_details", "image_tokens"),
)


class OpenAIImages(Plain):
    """OpenAI's images: ``POST …/images/generations``, ``…/edits`` and ``…/variations``."""

    wire = "openai.images"
    operation = GenAiOperationName.GENERATE_CONTENT
    messages_field = "prompt"

    def unwrapped(self, body: bytes) -> bytes:
        """Return the body: of a form, whose images are part of the prompt."""
        form = form_of(body)
        if form is None:
            return body
        parts: list[Object] = []
        if prompt := text(form.get("prompt")):
            parts.append({"type": "text", "text": prompt})
        for file in files_in(form.get("image")):
            kind = text(file.get("content_type")) or "image/png"
            parts.append({"type": "image_url", "image_url": f"data:{kind};base64,{file['data']}"})
        fields = typed(rest(form, "prompt", "image", "mask"), "n", "stream")
        return msgspec.json.encode(fields | {"prompt": [parts]})

    def parameters(self, request: Object) -> dict[str, Value]:
        """Return attributes for the request's fields."""
        choices = integer(request.get("n"))
        return sampling(request) | without_none(
            {
                a.GEN_AI_REQUEST_CHOICE_COUNT: None if choices == 1 else choices,
                a.GEN_AI_OUTPUT_TYPE: GenAiOutputType.IMAGE,
            }
        )

    def message(self, item: Any) -> InputMessage:
        """Return the message for the prompt, with the images that it is about."""
        return InputMessage(role="user", parts=content_parts(item))

    def fold(self) -> ImageFold:
        """Return a new fold for a stream."""
        return ImageFold()

    def answer(self, body: Object, request: Object, cut_short: bool) -> ResponseContent:
        """Return the contents of ``body``: one message per image."""
        form = text(body.get("output_format")) or text(request.get("output_format")) or "png"
        messages: list[OutputMessage] = []
        for item in sequence(body.get("data")):
            image = mapping(item)
            part = _image(image, f"image/{form}")
            said = without_none({"revised_prompt": text(image.get("revised_prompt"))})
            if part is not None:
                messages.append(OutputMessage(role="assistant", parts=[part], extras=said))
        found = without_none({a.GEN_AI_RESPONSE_MODEL: text(body.get("model"))})
        return ResponseContent(
            messages,
            [FinishReason.ERROR] if cut_short and messages else [],
            found | tokens(mapping(body.get("usage")), _USAGE),
        )


def _image(image: Object, mime_type: str) -> Part | None:
    if data := text(image.get("b64_json")):
        return Blob(mime_type=mime_type, modality="image", content=data)
    url = text(image.get("url"))
    return located(url, "image", {}) if url else None


class ImageFold:
    """Joins the events of a stream into an answer with images."""

    def __init__(self) -> None:
        self._body: Object = {}
        self._images: list[Object] = []
        self._unfinished: Object | None = None
        self._ended = False

    def event(self, name: str, value: Object) -> None:
        """Add the next event."""
        kind = text(value.get("type")) or name
        if kind.endswith(".partial_image"):
            self._unfinished = value
        elif kind.endswith(".completed"):
            self._images.append({"b64_json": value.get("b64_json")})
            self._body |= rest(value, "type", "b64_json")
            self._unfinished, self._ended = None, True
        elif kind == "error":
            self._body["error"] = value.get("error") or rest(value, "type")

    def done(self) -> None:
        """No-op."""

    def ended(self, whole: bool) -> bool:
        """Whether the last image was received."""
        return self._ended and self._unfinished is None

    def body(self) -> Object:
        """Return the body so far; an image that is not finished is part of it."""
        if self._unfinished is None:
            return self._body | {"data": self._images}
        form = without_none({"output_format": self._unfinished.get("output_format")})
        unfinished = {"b64_json": self._unfinished.get("b64_json")}
        return self._body | form | {"data": [*self._images, unfinished]}
