"""xAI's images over gRPC: ``xai_api.Image/GenerateImage``, read as OpenAI's images."""

from __future__ import annotations

import json

from playhead_genai.providers.openai_media.images import OpenAIImages
from playhead_genai.providers.reading import Object, mapping, rest, sequence, text, without_none
from playhead_genai.providers.xai.grpc import read_body, single
from playhead_genai.providers.xai.protobuf import read
from playhead_genai.providers.xai.schema import IMAGES, IMAGES_REQUEST
from playhead_semconv.values import GenAiProviderName

COUNTS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
"""Tokens as OpenAI's images and as xAI name them."""


class XaiImages(OpenAIImages):
    """xAI's images over gRPC: ``xai_api.Image/GenerateImage``, read as OpenAI's images."""

    wire = "xai.images"
    provider = GenAiProviderName.X_AI

    def unwrapped(self, body: bytes) -> bytes:
        """Return the request in JSON; images that it is about are parts of the prompt."""
        try:
            asked = read(body, IMAGES_REQUEST)
        except (ValueError, RecursionError):
            return b""
        parts: list[Object] = [{"type": "text", "text": text(asked.get("prompt")) or ""}]
        for item in (asked.get("image"), *sequence(asked.get("images"))):
            if url := text(mapping(item).get("image_url")):
                parts.append({"type": "image_url", "image_url": url})
        return json.dumps(rest(asked, "prompt", "image", "images") | {"prompt": [parts]}).encode()

    def media(self, kind: str, data: bytes) -> Object | None:
        """Return the answer as OpenAI's images have it; a picture within it is a ``data:`` URL."""
        return read_body(kind, data, IMAGES, _body)


def _body(answer: list[Object]) -> Object:
    said = single(answer)
    images = [mapping(item) for item in sequence(said.get("images"))]
    counts = mapping(said.get("usage"))
    used = {name: counts.get(field) for name, field in COUNTS.items()}
    shown = [{"url": one.get("base64") or one.get("url")} for one in images]
    return {**said, "data": shown, "usage": without_none(used)}
