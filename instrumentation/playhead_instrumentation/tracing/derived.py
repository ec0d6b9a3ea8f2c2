"""What the bytes of an attempt mean: its wire, its answer, and who was asked. Runs in the worker."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from playhead_core.credentials.responses import decoded
from playhead_core.facts import EndedHow
from playhead_genai.model_providers import provider_at
from playhead_genai.providers import WireResponse, derive, recognised
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_semconv import attributes as a


def wire_of(attempt: Attempt) -> str:
    """The wire of a request; empty: it is not known."""
    return recognised(attempt.method, attempt.url, attempt.request_body) or ""


def response_of(attempt: Attempt) -> WireResponse:
    """The answer of an attempt, as far as it has come."""
    complete = ended_how(attempt) == "complete"
    if attempt.exchange.kind == "grpc":
        from playhead_genai.providers.xai.grpc import grpc_messages  # few programs use gRPC

        return grpc_messages(attempt.chunks, complete=complete)
    headers, chunks = attempt.response_headers, attempt.chunks
    if any(attempt.unpacked):
        with suppress(Exception):  # damaged data, which each coding reports in its own way
            chunks, _ = decoded(chunks, attempt.unpacked)
            headers = [one for one in headers if one[0].lower() != "content-encoding"]
    return WireResponse(attempt.status_code, headers, chunks, complete=complete)


def asked_whom(attempt: Attempt) -> dict[str, Any]:
    """Server and provider of a request, as attributes of a span."""
    parts = urlsplit(attempt.url)
    host = parts.hostname or ""
    said: dict[str, Any] = {a.SERVER_ADDRESS: host}
    said[a.SERVER_PORT] = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    provider = provider_at(host)
    return said | ({a.GEN_AI_PROVIDER_NAME: provider} if provider else {})


def ended_how(attempt: Attempt) -> EndedHow:
    """How an attempt ended. One that is still open was abandoned: the process ends."""
    return attempt.end.how if attempt.end is not None else "abandoned"


def meaning_of(attempt: Attempt) -> dict[str, Any]:
    """Attributes of the span of a call that made this attempt alone; empty: it was no call."""
    wire = wire_of(attempt)
    if not wire:
        return {}
    derived = derive(wire, attempt.request_body, response_of(attempt), url=attempt.url)
    said = {**derived.attributes, **asked_whom(attempt)}
    if derived.provider:
        said.setdefault(a.GEN_AI_PROVIDER_NAME, derived.provider)
    return said
