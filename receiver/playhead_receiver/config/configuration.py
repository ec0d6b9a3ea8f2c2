"""The configuration of a receiver, in sections."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from playhead_core.settings import Settings
from playhead_receiver.ingest.encodings import MAX_BYTES
from playhead_receiver.storage.api.retention import History
from playhead_receiver.storage.content.references import References
from playhead_receiver.storage.retention import Policy
from playhead_receiver.system.defaults import GRPC_PORT, HTTP_PORT
from playhead_receiver.system.listening import Tls, is_loopback
from playhead_receiver.system.writer_lock import WriterLock


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a receiver listens. Port 0 is any free one."""

    http_port: int = HTTP_PORT
    grpc_port: int | None = GRPC_PORT
    """None: no gRPC."""
    query_port: int | None = None
    """None: no query API, and no compatibility APIs."""
    host: str = "127.0.0.1"
    tls: Tls | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a receiver."""

    token: str = ""
    """A token with all scopes, in addition to those in the folder's `TokenBook`."""
    guarded: bool = False
    """Whether a token is required as soon as the folder has one."""

    def needs_token(self, host: str) -> bool:
        """Whether a token is required from the start."""
        return bool(self.token) or not is_loopback(host)


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the data of all tenants is stored, and for how long."""

    url: str = ""
    """URL of a database; empty: folders."""
    blobs: str = ""
    """URL of an object store for large bodies; those of tenant NAME go to ``tenants/NAME`` in it."""
    policy: Policy | None = None
    """How long runs are kept; None: forever."""
    history: History | None = None
    """Retention of facts that services recorded outside of requests; None: all."""
    search: bool = True
    """Whether stored content is indexed for the search."""


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """How requests are accepted."""

    limit_bytes: int = MAX_BYTES
    """The largest request, after decompression."""
    separate_process: bool = False
    """Whether spans may be read in a separate process."""


@dataclass(frozen=True, slots=True)
class CompatibilityLimits:
    """Largest size of one attribute for other viewers, by compatibility API; 0: no limit."""

    jaeger_bytes: int = 64 << 10
    tempo_bytes: int = 16 << 10
    url: str = ""
    """URL at which viewers reach the query API; empty: the address on which it listens."""


@dataclass(frozen=True, slots=True)
class Programs:
    """How runs are replayed and forked for callers of the query API."""

    command: tuple[str, ...] = ()
    """The command `playhead`; empty: nothing is executed."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables with the settings of the receiver, in addition to those of this process."""


@dataclass(frozen=True, slots=True)
class Watching:
    """When a running run is stuck, and who is told what was found."""

    stuck_s: float = 300.0
    """Without progress in a call, a tool or code of its own."""
    stream_s: float = 60.0
    """Without a chunk in a stream."""
    alerts: str = ""
    """Rules, in the syntax of `alerts.rules`."""
    secret: str = ""
    """Signs alerts to webhooks; empty: they are not signed."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration of a receiver, without its data folder."""

    addresses: Addresses = Addresses()
    access: Access = Access()
    storage: Storage = Storage()
    intake_options: IntakeOptions = IntakeOptions()
    forward: tuple[str, ...] = ()
    """OTLP endpoints that get a copy, in the syntax of `forward.destination`."""
    compatibility: CompatibilityLimits = CompatibilityLimits()
    references: References | None = None
    """Where to read content that spans refer to."""
    programs: Programs = Programs()
    watching: Watching = Watching()
    agents: Settings | None = None
    """Settings of agents on this machine, whose spool is shown; None: no spool is read."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """Resources that the caller hands over to a receiver, which releases them."""

    lock: WriterLock
    """Of the data folder."""
    listener: socket.socket | None = None
    """A socket that listens for HTTP."""
