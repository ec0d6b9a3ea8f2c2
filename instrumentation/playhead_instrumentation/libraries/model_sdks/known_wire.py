"""Recognize the model call of an SDK request by its method, its path and the fields of its body."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from playhead_genai.providers import DIALECTS
from playhead_genai.providers.catalogue import Wire, at_path, fits, model_in
from playhead_genai.providers.reading import outline
from playhead_instrumentation.libraries.model_sdks.entry_point import ModelCall, ModelEndpoint
from playhead_instrumentation.tracing.calls import current_calls


def prepare(*wires: str) -> None:
    """Load what calls of an SDK need that speaks ``wires``; it has just been imported."""
    if (calls := current_calls()) is not None:
        calls.prepare()
        for wire in wires:
            _ = DIALECTS[wire]


def describe(method: str, url: str, body: object, endpoint: ModelEndpoint) -> ModelCall | None:
    """Return the model call of a request; None if its wire is not known.

    ``url``: the whole URL, or its path. ``body``: JSON in bytes or text, or the object itself.
    """
    wires, named = _at_path(method, url)
    if not wires:
        return None
    if isinstance(body, str | bytes | bytearray):
        body = outline(body)
    if not isinstance(body, Mapping):
        return None
    fields = cast("Mapping[str, Any]", body)
    wire = next((one.name for one in wires if fits(one, fields)), None)
    if wire is None:
        return None
    model = fields.get("model")
    return ModelCall(
        DIALECTS[wire].operation, wire, model if isinstance(model, str) else named, endpoint
    )


@lru_cache(256)
def _at_path(method: str, url: str) -> tuple[tuple[Wire, ...], str]:
    """Return the wires that a request may be of, and the model that its URL names."""
    return tuple(at_path(method, url)), model_in(url)
