"""The receiver: store, intake on its two ports, and what is forwarded. Embedded or standing."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from playhead_receiver.access import Audit, Guard, TokenBook
from playhead_receiver.access.database import AccessFile
from playhead_receiver.access.names import KnownNames
from playhead_receiver.endpoints.http import http_app
from playhead_receiver.faces.shown import Limits, Shown
from playhead_receiver.host.listening import HttpServer, Tls, bracketed, is_loopback, port_taken
from playhead_receiver.host.place import GRPC_PORT, HTTP_PORT
from playhead_receiver.host.writer_lock import WriterLock
from playhead_receiver.intake import Intake
from playhead_receiver.intake.encodings import MAX_BYTES
from playhead_receiver.intake.reading_process import Apart
from playhead_receiver.store import Store, open_store
from playhead_receiver.store.content.references import References
from playhead_receiver.store.keeping.retention import Policy
from playhead_receiver.store.protocol.ageing import History
from playhead_receiver.tenants.tenants import Kept, Tenants
from playhead_semconv.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    import socket

    import grpc

    from playhead_receiver.forward import Destination, Forwarder, Relay
    from playhead_receiver.query.serving import Forwarded, Serving

KEY_BYTES = 32
Say: TypeAlias = Callable[[str], None]
"""Says something to whoever runs the receiver."""

DRAIN_S = 5.0
"""How long requests that are under way may take when the receiver stops."""


class Receiver:
    """Takes OTLP on ``host`` and stores it in ``data_dir``; a context manager, or `run_forever`.

    ``store``: the URL of a database that keeps the runs instead. ``blobs``: the URL of an object store
    for their large bodies. Port 0 is any free one; ``grpc_port`` None: no gRPC; ``query_port`` None: no
    query API. ``forward``: OTLP endpoints that get a copy, in the words of `forward.destination`.
    ``token``: one that opens everything; those of the folder's `TokenBook` open what they are for. A
    token is needed where ``token`` is given, where ``host`` is not loopback, and, if ``guarded``, from
    when the folder has one. Who may read the folder then finds one in the lock file.
    ``limit_bytes``: the largest request, after decompression. ``policy``: how long runs are kept; None:
    for ever. ``history``: what is kept of a service's own run; None: all. ``faces``: what other viewers
    are given. ``references``: places of what spans refer to. ``apart``: spans may be read in a process
    of their own. ``search``: what is stored is indexed. ``say``: hears of destinations that nothing gets
    through to. ``lock``, ``listener``: the lock of the folder and a socket that listens for HTTP, where
    they are had already; it lets go of both.

    Errors of `start`: `StoreBusy` if another receiver writes to the directory, `StoreUnavailable`,
    `UsageError` if a port is taken, `ConfigurationError` if ``host`` is not loopback and there is no
    token, if ``tls`` cannot be used, or if gRPC is wanted and grpcio is not installed.
    `ConfigurationError` at once for what is no destination.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        store: str = "",
        blobs: str = "",
        http_port: int = HTTP_PORT,
        grpc_port: int | None = GRPC_PORT,
        query_port: int | None = None,
        host: str = "127.0.0.1",
        forward: Sequence[str] = (),
        token: str = "",
        guarded: bool = False,
        tls: Tls | None = None,
        limit_bytes: int = MAX_BYTES,
        policy: Policy | None = None,
        history: History | None = None,
        faces: Limits = Limits(),  # noqa: B008, frozen
        references: References | None = None,
        apart: bool = False,
        search: bool = True,
        say: Say = lambda text: None,
        lock: WriterLock | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        self.data_dir = Path(data_dir)
        self._store_url = store
        self._blobs_url = blobs
        self._host = host
        self._ports = (http_port, grpc_port, query_port)
        self._forward = _destinations_of(forward)
        self._token = token
        self._guarded = guarded
        self._required = bool(token) or not is_loopback(host)
        self._tls = tls
        self._limit_bytes = limit_bytes
        self._policy = policy
        self._history = history
        self._faces = faces
        self._references = references or References()
        self._apart = Apart() if apart else None
        self._search = search
        self._say = say
        self._lock = lock
        self._listener = listener
        self._store: Store | None = None
        self._tenants: Tenants | None = None
        self._access: list[AccessFile] = []
        self._http: HttpServer | None = None
        self._query: HttpServer | None = None
        self._serving: Serving | None = None
        self._grpc: grpc.Server | None = None
        self._grpc_endpoint = ""
        self._forwarders: list[Forwarder] = []
        self._relays: list[Relay] = []

    @property
    def store(self) -> Store:
        """The store that this receiver writes to."""
        if self._store is None:
            raise UsageError("the receiver is not running")
        return self._store

    @property
    def intake(self) -> Intake:
        """What takes the requests of both transports for the data folder's own tenant."""
        return self.tenants.own.intake

    @property
    def tenants(self) -> Tenants:
        """Those whose data are kept."""
        if self._tenants is None:
            raise UsageError("the receiver is not running")
        return self._tenants

    @property
    def http_endpoint(self) -> str:
        """``http://127.0.0.1:4318``."""
        return "" if self._http is None else self._http.endpoint

    @property
    def grpc_endpoint(self) -> str:
        """``127.0.0.1:4317``; empty without gRPC."""
        return self._grpc_endpoint

    @property
    def query_endpoint(self) -> str:
        """``http://127.0.0.1:4319``; empty without query API."""
        return "" if self._query is None else self._query.endpoint

    def start(self) -> None:
        """Take the lock, open the store, listen. Whatever fails leaves nothing behind."""
        if self._tls is not None:
            self._tls.check()
        self._access = [AccessFile(self.data_dir), AccessFile(self.data_dir)]
        book, audit = TokenBook(self._access[0]), Audit(self._access[1])
        if not self._token and not is_loopback(self._host) and not book.any_live():
            raise ConfigurationError(
                f"{self._host} can be reached from elsewhere, and there is no token",
                hint="playhead token create, or export PLAYHEAD_TOKEN=…, or bind to 127.0.0.1",
            )
        key = secrets.token_urlsafe(KEY_BYTES) if self._guarded or self._required else ""
        guard = Guard(book, static=self._token, key=key, required=self._required, by_book=self._guarded)

        def deleted(tenant: str, by: str, trace_id: str) -> None:
            if guard.required:
                audit.note("", by, tenant, "delete", trace_id)

        try:
            if self._lock is None:
                self._lock = WriterLock.take(self.data_dir)
            self._store = open_store(
                self._store_url or self.data_dir,
                lock=self._lock,
                blobs=self._blobs_url,
                references=self._references,
            )
            tenants = self._tenants = Tenants(
                self.data_dir,
                self._store,
                Kept(self._store_url, self._blobs_url, self._policy, self._history, self._search),
                self._apart,
                deleted,
            )
            if self._forward:
                self._start_relays(tenants)
            shown = Shown(tenants, self._faces, lambda: self.query_endpoint)
            self._start_http(tenants, guard, self._ports[0])
            if self._ports[1] is not None:
                self._start_grpc(tenants, guard, audit, shown, self._ports[1])
            if self._ports[2] is not None:
                self._start_query(tenants, guard, audit, shown, self._ports[2])
            if self._forward:
                self._start_forwarders(tenants)
            tenants.start({token.tenant for token in book.tokens()})
            self._lock.announce(self.http_endpoint, self.grpc_endpoint, self.query_endpoint, key)
        except BaseException:
            self.stop(drain_s=0)
            raise

    def stop(self, drain_s: float = DRAIN_S) -> None:
        """Finish what is under way, then let go of everything. Idempotent."""
        if self._serving is not None:
            self._serving.stopping = True
        stopped = None if self._grpc is None else self._grpc.stop(drain_s)
        for server in (self._query, self._http):
            if server is not None:
                server.stop(drain_s)
        if stopped is not None:
            stopped.wait()
        if self._apart is not None:
            self._apart.close()
        for forwarder in (*self._forwarders, *self._relays):
            forwarder.ask_to_stop()
        for forwarder in (*self._forwarders, *self._relays):
            forwarder.stop()
        if self._tenants is not None:
            self._tenants.close()
        if self._store is not None:
            self._store.close()
        for file in self._access:
            file.close()
        if self._lock is not None:
            self._lock.release()
        self._grpc = self._http = self._query = self._serving = None
        self._tenants = self._store = self._lock = None
        self._forwarders, self._relays, self._access = [], [], []

    def run_forever(self, on_ready: Callable[[Receiver], None] | None = None) -> None:
        """Start, and stop at SIGTERM or SIGINT. For the main thread of a process of its own.

        ``on_ready`` is called when connections are taken.
        """
        asked = threading.Event()

        def ask(_number: int, _frame: FrameType | None) -> None:
            asked.set()

        before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            self.start()
            if on_ready is not None:
                on_ready(self)
            asked.wait()
        finally:
            self.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def __enter__(self) -> Receiver:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_relays(self, tenants: Tenants) -> None:
        from playhead_receiver.forward import Relay  # heavy, and few forward

        for destination in self._forward:
            relay = Relay(destination, self.data_dir, self._say)
            self._relays.append(relay)
            tenants.house(destination.tenant).intake.pass_on.append(relay.put)
            relay.start()

    def _start_forwarders(self, tenants: Tenants) -> None:
        from playhead_receiver.forward import Forwarder

        for destination in self._forward:
            if destination.is_at(self.http_endpoint, f"grpc://{self.grpc_endpoint}"):
                raise ConfigurationError(f"the destination {destination.endpoint} is this receiver")
            store = tenants.house(destination.tenant).store
            base_url = self._faces.url or self.query_endpoint
            forwarder = Forwarder(store, destination, self.data_dir, base_url=base_url, say=self._say)
            self._forwarders.append(forwarder)
            forwarder.start()

    def _start_http(self, tenants: Tenants, guard: Guard, port: int) -> None:
        app = http_app(tenants, guard, limit_bytes=self._limit_bytes)
        self._http = HttpServer(
            self._by_known_names(app, guard),
            self._host,
            port,
            "--http-port",
            name="playhead-http",
            tls=self._tls,
            listener=self._listener,
        )
        self._http.start()

    def _start_query(
        self, tenants: Tenants, guard: Guard, audit: Audit, shown: Shown, port: int
    ) -> None:
        from playhead_receiver.faces.routes import FACES
        from playhead_receiver.query import query_app  # heavy, and an embedded receiver has none
        from playhead_receiver.query.serving import Serving

        serving = Serving(
            tenants,
            guard,
            audit,
            self._destinations,
            version("playhead-receiver"),
            self._references,
        )
        self._serving = serving
        app = query_app(serving, FACES)
        app.state.shown = shown
        self._query = HttpServer(
            self._by_known_names(app, guard),
            self._host,
            port,
            "--query-port",
            name="playhead-query",
            tls=self._tls,
        )
        self._query.start()

    def _by_known_names(self, app: ASGIApp, guard: Guard) -> KnownNames:
        named = urlsplit(self._faces.url).hostname
        return KnownNames(app, guard, frozenset((named,) if named else ()))

    def _destinations(self) -> list[Forwarded]:
        from playhead_receiver.query.serving import Forwarded

        return [
            Forwarded(
                number,
                one.sent,
                one.refused,
                bool(one.problem or relay.problem),
                one.left_out,
                relay.counts.sent,
                relay.counts.refused,
                relay.dropped,
                relay.waiting,
                one.behind,
            )
            for number, (one, relay) in enumerate(zip(self._forwarders, self._relays, strict=False), 1)
        ]

    def _start_grpc(self, tenants: Tenants, guard: Guard, audit: Audit, shown: Shown, port: int) -> None:
        if find_spec("grpc") is None:
            raise ConfigurationError(
                "gRPC cannot be served: grpcio is not installed", hint="pip install 'playhead[grpc]'"
            )
        from playhead_receiver.endpoints.grpc import grpc_server  # heavy, and not everybody wants it
        from playhead_receiver.faces.jaeger.storage import jaeger_handlers

        server = grpc_server(
            tenants, guard, jaeger_handlers(shown, guard, audit), limit_bytes=self._limit_bytes
        )
        address = f"{bracketed(self._host)}:{port}"
        try:
            if self._tls is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, self._tls.for_grpc())
        except RuntimeError:
            raise port_taken(self._host, port, "--grpc-port") from None
        server.start()
        self._grpc = server
        self._grpc_endpoint = f"{bracketed(self._host)}:{bound}"


def _destinations_of(forward: Sequence[str]) -> list[Destination]:
    if not forward:
        return []
    from playhead_receiver.forward import destinations_of  # heavy, and few forward

    return destinations_of(forward)
