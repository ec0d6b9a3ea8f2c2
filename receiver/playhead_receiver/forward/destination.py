"""Parses destinations: ``http://tempo:4318 drop=gen_ai.*.messages limit=4K sample=0.1``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from playhead_core.errors import ConfigurationError
from playhead_exporter.delivery import Trust
from playhead_receiver.auth.tokens import TENANT
from playhead_receiver.storage.retention import size_of
from playhead_receiver.system.listening import is_loopback

WORDS = (
    "keep=GLOB,… drop=GLOB,… limit=4K sample=0.1 tenant=NAME headers=VARIABLE"
    " ca=FILE cert=FILE key=FILE queue=NAME logs tape"
)
PORTS = {"http": 4318, "https": 443, "grpc": 4317, "grpcs": 4317}
_VALUES = frozenset(
    ("keep", "drop", "limit", "sample", "tenant", "headers", "ca", "cert", "key", "queue")
)


class Destination(msgspec.Struct, frozen=True):
    """An OTLP endpoint, and what is sent to it."""

    endpoint: str
    """Base address or full path over HTTP; ``grpc://HOST:PORT``, with TLS ``grpcs://``."""
    keep: tuple[str, ...] = ()
    """Globs: only span attributes whose names match one of them are sent; empty: all."""
    drop: tuple[str, ...] = ()
    """Globs: attributes whose names match one of them are never sent, wherever they are."""
    limit_bytes: int = 0
    """Most bytes of one attribute's value; 0: no limit."""
    sample: float = 1.0
    """Share of traces, selected by their ids. Traces that failed or have errors are always sent."""
    tenant: str = ""
    """The tenant whose data is sent; empty: the data folder's own."""
    headers: str = ""
    """Name of the environment variable with headers, ``name=value,…``, percent-encoded."""
    ca: str = ""
    """File of the CA to trust; empty for the system's."""
    cert: str = ""
    """File of the client certificate to present."""
    key: str = ""
    """File of its private key, if that is a separate file."""
    queue: str = ""
    """Distinguishes destinations at the same endpoint."""
    tape: bool = False
    """Whether facts are sent too."""
    logs: bool = False
    """Whether log records that are no facts are sent too."""

    @property
    def trust(self) -> Trust:
        """The TLS files as a `Trust`. `ConfigurationError` if a file cannot be read."""
        for path in (self.ca, self.cert, self.key):
            if path and not os.access(path, os.R_OK):
                raise ConfigurationError(f"{path} cannot be read, for {self.endpoint}")
        return Trust(self.ca, self.cert, self.key)

    @property
    def name(self) -> str:
        """The key of its queue. The same destination with other options continues the same queue."""
        place = f"{self.tenant}@{self.endpoint}" if self.tenant else self.endpoint
        return f"{place} queue={self.queue}" if self.queue else place

    def is_at(self, *endpoints: str) -> bool:
        """Whether it is one of ``endpoints``, which listen on this machine."""
        own = urlsplit(self.endpoint)
        port = own.port or PORTS[own.scheme]
        ports = {urlsplit(one).port for one in endpoints}
        return port in ports and is_loopback(own.hostname or "")

    def sent_headers(self) -> dict[str, str]:
        """The headers of requests to it. `ConfigurationError` if the variable has none."""
        if not self.headers:
            return {}
        pairs = [pair.partition("=") for pair in os.environ.get(self.headers, "").split(",") if pair]
        if not pairs or not all(name.strip() and found for name, found, _ in pairs):
            raise ConfigurationError(
                f"{self.headers} has no headers for {self.endpoint}",
                hint=f"export {self.headers}='authorization=Bearer%20…'",
            )
        return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


def destinations_of(texts: Iterable[str]) -> list[Destination]:
    """Parse destinations; ``;`` separates several in one text. `ConfigurationError` if malformed."""
    found = [_parsed(one) for text in texts for one in text.split(";") if one.strip()]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"the destination {twice} is named twice", hint="give one of them a queue: queue=NAME"
        )
    return found


def _parsed(text: str) -> Destination:
    endpoint, *words = text.split()
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https", "grpc", "grpcs") or not parts.hostname:
        raise ConfigurationError(
            f"destination {endpoint!r} is not an http(s):// or grpc(s):// URL", hint="http://jaeger:4318"
        )
    if parts.scheme in ("grpc", "grpcs") and find_spec("grpc") is None:
        raise ConfigurationError(
            f"destination {endpoint!r} needs grpcio", hint="pip install 'playhead[grpc]'"
        )
    if "@" in parts.netloc:
        raise ConfigurationError(
            f"a password does not belong in the destination {parts.hostname}",
            hint="headers=VARIABLE names an environment variable that has the headers",
        )
    given: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if word in ("tape", "logs"):
            given[word] = True
        elif not value or name not in _VALUES:
            raise ConfigurationError(f"{word!r} is not an option of a destination", hint=WORDS)
        elif name in ("keep", "drop"):
            given[name] = (*given.get(name, ()), *(glob for glob in value.split(",") if glob))
        elif name == "limit":
            given["limit_bytes"] = size_of(value)
        elif name == "sample":
            given["sample"] = _share(value)
        else:
            given[name] = value
    if not TENANT.match(given.get("tenant", "")):
        raise ConfigurationError(f"{given['tenant']!r} cannot be the name of a tenant")
    if given.get("tape") and given.keys() & {"keep", "drop", "limit_bytes", "sample"}:
        raise ConfigurationError(
            f"the tape goes to {endpoint} whole or not at all",
            hint="leave out tape, or keep=, drop=, limit= and sample=",
        )
    return Destination(endpoint, **given)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigurationError(f"sample={text} is not a share", hint="from 0 to 1, e.g. sample=0.1")
    return share
