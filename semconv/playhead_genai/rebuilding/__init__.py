"""Builds answers of providers from spans, for replays of runs whose exchanges are not on a tape."""

from __future__ import annotations

from typing import Final

from playhead_genai.providers import WireResponse
from playhead_genai.rebuilding import (
    anthropic_messages,
    embeddings,
    gemini,
    openai_chat,
    openai_responses,
)
from playhead_genai.rebuilding.calls import ModelAnswer
from playhead_genai.rebuilding.rendering import AnswerForm, NotRebuilt, Rendering, render

FORMS: Final[dict[str, AnswerForm]] = {
    "anthropic.messages": anthropic_messages.FORM,
    "gemini.batch_embed_contents": embeddings.GEMINI_BATCH,
    "gemini.embed_content": embeddings.GEMINI,
    "gemini.generate_content": gemini.FORM,
    "openai.chat": openai_chat.FORM,
    "openai.embeddings": embeddings.OPENAI,
    "openai.responses": openai_responses.FORM,
}
"""Forms by the names of their wires, as in ``playhead.wire``."""


def rebuilt(wire: str, answer: ModelAnswer, body: bytes, url: str) -> tuple[WireResponse, Rendering]:
    """Render ``answer`` for a request on ``wire``. `NotRebuilt` if that is not possible."""
    form = FORMS.get(wire)
    if form is None:
        raise NotRebuilt(f"answers of {wire} cannot be rebuilt")
    return render(form, answer, body, url)
