"""Where a recording is delivered: the endpoint as the user wrote it, and messages to the user."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

import msgspec

from playhead_core.errors import ConfigurationError, PlayheadError
from playhead_core.process.own_messages import prefixed, write_message
from playhead_core.untrusted.shown_text import visible

DEFAULT_PORTS = {"http/protobuf": 4318, "grpc": 4317}


class Signal(StrEnum):
    """What a request carries; the value is the end of its HTTP path."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Endpoint(msgspec.Struct, frozen=True):
    """Where requests go."""

    base: str
    """Scheme, host, port and perhaps a path, without a slash at the end."""
    protocol: str
    """http/protobuf or grpc."""

    @classmethod
    def parse(cls, text: str, protocol: str) -> Endpoint:
        """Parse an endpoint from the settings. Raises `ConfigurationError` if it names no address."""
        if protocol not in DEFAULT_PORTS:
            raise ConfigurationError(
                f"protocol is {protocol!r}", hint="use http/protobuf or grpc: PLAYHEAD_PROTOCOL=grpc"
            )
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"endpoint {text!r} is no http(s) URL", hint="e.g. http://127.0.0.1:4318"
            )
        path = parts.path.rstrip("/")
        for signal in Signal:
            path = path.removesuffix(f"/v1/{signal}")
        netloc = parts.netloc if parts.port else f"{parts.netloc}:{_port(parts.scheme, protocol)}"
        return cls(urlunsplit((parts.scheme, netloc, path, "", "")), protocol)

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.base.startswith("https://")

    @property
    def target(self) -> str:
        """Host and port, in the form that gRPC expects."""
        return urlsplit(self.base).netloc.rpartition("@")[2]

    def url(self, signal: Signal) -> str:
        """Return the full HTTP address for one signal."""
        return f"{self.base}/v1/{signal}"


def _port(scheme: str, protocol: str) -> int:
    if protocol == "grpc":
        return DEFAULT_PORTS["grpc"]
    return 443 if scheme == "https" else DEFAULT_PORTS[protocol]


class Trust(msgspec.Struct, frozen=True):
    """Paths of PEM files; empty: none."""

    ca: str = ""
    """Certificate of the CA that signed the endpoint's certificate; empty: the system's CAs."""
    certificate: str = ""
    """Client certificate, where the endpoint asks for one. The same file may hold the key."""
    key: str = ""


class DeliveryNotices:
    """Reports each matter once, until it is over. ``quiet``: errors only."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._reported: set[str] = set()

    def fail(self, matter: str, problem: PlayheadError) -> None:
        """Report a problem that the user must fix."""
        if matter not in self._reported:
            self._reported.add(matter)
            write_message(f"{visible(str(problem))}\n")

    def say(self, matter: str, text: str) -> None:
        """Report a problem that recovers by itself."""
        if matter not in self._reported:
            self._reported.add(matter)
            if not self._quiet:
                write_message(prefixed(visible(text)))

    def over(self, matter: str, text: str = "") -> None:
        """The matter is settled; ``text`` is reported if its beginning was."""
        if matter in self._reported:
            self._reported.discard(matter)
            if text and not self._quiet:
                write_message(prefixed(visible(text)))
