"""Provider name, host and port of a call, from a client's class and base URL."""

from __future__ import annotations

import weakref
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from playhead_genai.model_providers import provider_at
from playhead_semconv.values import GenAiProviderName as Provider

BY_CLASS = (
    ("Azure", Provider.AZURE_AI_OPENAI),
    ("Bedrock", Provider.AWS_BEDROCK),
    ("Vertex", Provider.GCP_VERTEX_AI),
)
"""Part of the client's class name → provider."""

DEFAULT_PORTS = {"http": 80, "https": 443}


class ModelEndpoint(msgspec.Struct, frozen=True):
    """Provider, host and port of a call."""

    provider: str
    """Empty if neither client nor host identifies it: a gateway or a local server."""
    address: str
    port: int


class ModelEndpoints:
    """Endpoints by client object; looked up again when a client's base URL has changed."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Any, tuple[Any, ModelEndpoint]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, client: Any, url: str) -> ModelEndpoint:
        """Return where ``client`` sends a request for ``url``, which may be relative to its base URL."""
        if url.startswith(("http://", "https://")):
            return endpoint(url, type(client).__name__)
        base = client.base_url
        known = self._known.get(client)
        if known is not None and known[0] is base:
            return known[1]
        found = endpoint(str(base), type(client).__name__)
        self._known[client] = (base, found)
        return found


@lru_cache(256)
def endpoint(url: str, client_class: str) -> ModelEndpoint:
    """Return provider, host and port of ``url``."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return ModelEndpoint(provider_of(host, client_class), host, port)


def provider_of(host: str, client_class: str) -> str:
    """Return the provider that answers at ``host``; empty if unknown."""
    for part, provider in BY_CLASS:
        if part in client_class:
            return provider
    return provider_at(host)
