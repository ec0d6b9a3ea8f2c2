"""Reads what a request to a provider asks, in the form in which requests of spans are compared."""

from __future__ import annotations

from playhead_genai.providers import WireResponse, derive, recognised
from playhead_genai.rebuilding.calls import Asked, asked_of


def asked_in(key: str, body: bytes) -> tuple[str, Asked] | None:
    """Return the wire of a request and what it asks; None if it is no call of a model.

    ``key``: method and URL.
    """
    method, _, url = key.partition(" ")
    wire = recognised(method, url, body)
    if wire is None:
        return None
    derived = derive(wire, body, WireResponse(), url=url)
    return wire, asked_of(derived.operation, derived.request_model, derived.attributes)
