"""By what a request finds its recording: digests of its body, or the body in a canonical form."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from playhead_core.facts import Ask, Exchange
from playhead_core.normalize.documents import with_fixed_boundary
from playhead_semconv import attributes as a


def digests_of(ask: Ask) -> list[bytes]:
    """The digests under which a request is found.

    They are the digest of the body that was sent, the digest of the body that the program made where a
    fork edited it, and the keyed digest of the redacted parts.
    """
    edited = ask.details.get(a.PLAYHEAD_EDITED_DIGEST)
    digests = [bytes.fromhex(str(edited)), ask.body.digest] if edited else [ask.body.digest]
    keyed: Any = ask.details.get(a.PLAYHEAD_REDACTED_DIGEST)
    return [*digests, b"keyed " + str(keyed).encode()] if keyed else digests


def is_standing(ask: Ask, *, serves: bool = True) -> bool:
    """Whether what is asked stays for later asks, as a connection in a pool.

    ``serves``: within a service; else among the threads of a program.
    """
    return ask.details.get(a.PLAYHEAD_ASK_STANDING) in (
        ("service", "program") if serves else ("program",)
    )


def canonical(body: bytes) -> bytes:
    """The same bytes for bodies with the same meaning.

    JSON: sorted keys, no whitespace. Multipart: without the boundary, which differs each time.
    """
    if body[:1] in (b"{", b"["):
        try:
            return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":")).encode()
        except ValueError:
            return body
    return with_fixed_boundary(body)


def host_of(key: str) -> str:
    """The host in a key of method and URL; empty where there is none."""
    return urlsplit(key.partition(" ")[2]).hostname or ""


def is_encoded(exchange: Exchange) -> bool:
    """Whether the bytes of an answer are compressed."""
    flat: list[Any] = exchange.head.get(a.PLAYHEAD_HTTP_HEADERS) or []
    return any(str(name).lower() == "content-encoding" for name in flat[::2])


def is_model_call(key: str, body: bytes) -> bool:
    """Whether a request is a call of a model, by its method, URL and body."""
    from playhead_genai.providers.recognition import (
        recognised,  # imported late: a replay needs it rarely
    )

    method, _, url = key.partition(" ")
    return recognised(method, url, body) is not None
