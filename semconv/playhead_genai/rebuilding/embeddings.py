"""Answers of OpenAI's and Gemini's embeddings, where the span has the vectors."""

from __future__ import annotations

import base64
import struct

from playhead_genai.providers.reading import Object
from playhead_genai.rebuilding.openai_chat import usage
from playhead_genai.rebuilding.rendering import AnswerForm, NotRebuilt, Rendering


def openai_body(made: Rendering) -> Object:
    """Return a list of embeddings, as numbers or as base64 of 32-bit floats, as requested."""
    packed = made.request.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": number, "embedding": _packed(one) if packed else one}
        for number, one in enumerate(_vectors(made))
    ]
    counts = usage(made.answer, "prompt_tokens", "", {}) or {"prompt_tokens": 0, "total_tokens": 0}
    counts.pop("", None)
    return {"object": "list", "data": data, "model": made.model(), "usage": counts}


def gemini_body(made: Rendering) -> Object:
    """Return one embedding."""
    return {"embedding": {"values": _vectors(made)[0]}}


def gemini_batch_body(made: Rendering) -> Object:
    """Return the embeddings of several texts."""
    return {"embeddings": [{"values": one} for one in _vectors(made)]}


def _vectors(made: Rendering) -> list[list[float]]:
    if not made.answer.vectors:
        raise NotRebuilt("its span has no vectors")
    return made.answer.vectors


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


OPENAI = AnswerForm(openai_body, None, lambda request, url: False)
GEMINI = AnswerForm(gemini_body, None, lambda request, url: False)
GEMINI_BATCH = AnswerForm(gemini_batch_body, None, lambda request, url: False)
