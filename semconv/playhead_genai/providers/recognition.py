"""Recognizes requests that are calls to a model, by their URL and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from playhead_core.facts import Value
from playhead_genai.model_providers import provider_at
from playhead_genai.providers.catalogue import DIALECTS, at_path, fits, model_in
from playhead_genai.providers.derive import Derived
from playhead_genai.providers.encodings import decoded_request
from playhead_genai.providers.forms import form_of
from playhead_genai.providers.reading import Object, mapping, parse, text
from playhead_semconv import attributes as a


def recognised(method: str, url: str, body: bytes) -> str | None:
    """Return the wire name of a request that no instrumentation named; None if it is not known.

    Other paths end in ``/responses`` or ``/messages``, too, so the body must match as well.
    """
    wires = list(at_path(method, url))
    if not wires:
        return None
    if wires[0].binary:
        return wires[0].name
    body = decoded_request(body)
    try:
        form = form_of(body)
        request: Any = (parse(body) if body else {}) if form is None else form
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict):
        return None
    fields = cast(Object, request)
    return next((wire.name for wire in wires if fits(wire, fields)), None)


def requested_model(method: str, url: str, body: bytes) -> str:
    """Return the model that a request to a known wire names, in its body or its URL; else nothing."""
    wire = recognised(method, url, body)
    if wire is None:
        return ""
    try:
        asked = parse(DIALECTS[wire].unwrapped(decoded_request(body)) or b"{}")
    except (ValueError, RecursionError):
        asked = {}
    return text(mapping(asked).get("model")) or model_in(url)


MALFORMED: Final = "malformed_response"
"""``error.type`` of an answer that violates its format."""

LASTING: Final = frozenset(("openai.batch", "openai.batch_file", "anthropic.batch"))
"""Wires whose requests leave something with the provider: sent again, they would do it twice."""


def may_be_sent_again(method: str, url: str, body: bytes) -> bool:
    """Whether a request asks a model and leaves nothing behind, so that it can be sent once more."""
    wire = recognised(method, url, body)
    return wire is not None and wire not in LASTING


def span_attributes(wire: str, derived: Derived, host: str, waited_ns: int | None) -> dict[str, Value]:
    """Return the attributes that the span of such a request has besides those for HTTP.

    ``waited_ns``: from its start to the first piece of the answer; None if none was received.
    """
    said = dict(derived.attributes)
    if derived.request_model:
        said[a.GEN_AI_REQUEST_MODEL] = derived.request_model
    if provider := provider_at(host) or derived.provider:
        said[a.GEN_AI_PROVIDER_NAME] = provider
    kind, _ = failure_of(derived)
    if kind:
        said[a.ERROR_TYPE] = kind
    if derived.streamed and waited_ns is not None:
        said[a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] = max(0, waited_ns) / 1e9
    said[a.PLAYHEAD_WIRE] = wire
    return said


def failure_of(derived: Derived) -> tuple[str, str]:
    """Return type and text of what is wrong with an answer; empty: nothing."""
    if derived.error_type or not derived.malformed:
        return derived.error_type, derived.error_message
    return MALFORMED, derived.problem


def call_name(said: Mapping[str, Any]) -> str:
    """Return the name of a span with these attributes: operation and model."""
    operation, model = said[a.GEN_AI_OPERATION_NAME], said.get(a.GEN_AI_REQUEST_MODEL)
    return f"{operation} {model}" if model else str(operation)
