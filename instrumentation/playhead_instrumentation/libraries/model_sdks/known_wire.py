"""What a request of an SDK asks for, by the wires that are known: method, path, fields of the body."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from playhead_genai.providers import DIALECTS
from playhead_genai.providers.catalogue import Wire, at_path, fits, model_in
from playhead_genai.providers.reading import outline
from playhead_instrumentation.libraries.model_sdks.entry_point import Asked
from playhead_instrumentation.libraries.model_sdks.model_endpoint import ModelEndpoint
from playhead_instrumentation.tracing.calls import current_calls


def prepare(*wires: str) -> None:
    """An SDK has been imported that speaks ``wires``: load what its calls need."""
    if (calls := current_calls()) is not None:
        calls.prepare()
        for wire in wires:
            _ = DIALECTS[wire]


def asked(method: str, url: str, body: object, where: ModelEndpoint) -> Asked | None:
    """Return what a request asks a model for; None where its wire is not known.

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
    return Asked(DIALECTS[wire].operation, wire, model if isinstance(model, str) else named, where)


@lru_cache(256)
def _at_path(method: str, url: str) -> tuple[tuple[Wire, ...], str]:
    """Return the wires that a request may be of, and the model that its URL names."""
    return tuple(at_path(method, url)), model_in(url)
