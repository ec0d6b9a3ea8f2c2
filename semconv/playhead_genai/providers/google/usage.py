"""Gemini's counts of tokens."""

from __future__ import annotations

from typing import Any

from playhead_core.facts import Value
from playhead_genai.providers.google.parts import camel
from playhead_genai.providers.reading import integer, sequence
from playhead_semconv import attributes as a

_OUTPUT = {
    "TEXT": a.GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
    "IMAGE": a.GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
    "AUDIO": a.GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
}
_DETAILS = {
    "promptTokensDetails": {
        "TEXT": a.GEN_AI_USAGE_TEXT_INPUT_TOKENS,
        "IMAGE": a.GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
        "AUDIO": a.GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
    },
    "candidatesTokensDetails": _OUTPUT,
    "responseTokensDetails": _OUTPUT,
}
_NUMBERED = ("", "TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT")
"""Modalities by number, where a client asked for numbers."""


def usage_of(metadata: Any) -> dict[str, Value]:
    """Return the attributes for ``usageMetadata``.

    Results of the provider's tools are input; thoughts are output. A live session counts its response
    under a name of its own.
    """
    usage = camel(metadata)
    found: dict[str, Value] = {}
    for name, fields in _SUMS:
        counts = [count for field in fields if (count := integer(usage.get(field))) is not None]
        total = integer(sum(counts))
        if counts and total is not None:
            found[name] = total
    for field, names in _DETAILS.items():
        for item in sequence(usage.get(field)):
            detail = camel(item)
            modality, count = detail.get("modality"), integer(detail.get("tokenCount"))
            at = integer(modality)
            word = _NUMBERED[at] if at is not None and 0 <= at < len(_NUMBERED) else modality
            if isinstance(word, str) and word in names and count:
                found[names[word]] = count
    return found


_SUMS = (
    (a.GEN_AI_USAGE_INPUT_TOKENS, ("promptTokenCount", "toolUsePromptTokenCount")),
    (a.GEN_AI_USAGE_OUTPUT_TOKENS, ("candidatesTokenCount", "responseTokenCount", "thoughtsTokenCount")),
    (a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, ("cachedContentTokenCount",)),
    (a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, ("thoughtsTokenCount",)),
)
