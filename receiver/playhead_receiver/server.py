"""The receiver: store, intake, query API and forwarding. Embedded in a command, or standalone."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from playhead_core.errors import ConfigurationError, UsageError
from playhead_receiver.alerts.delivery import Alerts
from playhead_receiver.alerts.rules import read_alerts
from playhead_receiver.api.compatibility.tenant_traces import TenantTraces
from playhead_receiver.auth import Audit, Guard, TokenBook
from playhead_receiver.auth.browsers import KnownNames, OwnOrigin, SafeAnswers
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Configuration, Inherited, Watching
from playhead_receiver.endpoints.http import http_app
from playhead_receiver.forward import Forwarder, Relay, destinations_of
from playhead_receiver.ingest import Intake
from playhead_receiver.ingest.reading_process import SpanReadingProcess
from playhead_receiver.maintenance.findings import Patience
from playhead_receiver.reruns.reruns import Reruns
from playhead_receiver.storage import Store, open_store
from playhead_receiver.storage.content.references import References
from playhead_receiver.system.defaults import require_descriptors
from playhead_receiver.system.listening import HttpServer, LateApp, bind, bracketed, port_taken
from playhead_receiver.system.writer_lock import WriterLock, destination_of, store_mark
from playhead_receiver.tenants.tenants import Tenants
from playhead_receiver.web import Pages

if TYPE_CHECKING:
    import grpc

    from playhead_receiver.api.serving import Forwarded, Serving
    from playhead_receiver.forward import Destination

KEY_BYTES = 32
Say: TypeAlias = Callable[[str], None]
"""Shows a message to the user who runs the receiver."""

QUERY_THREADS = 8
"""Number of queries that are answered concurrently, each with its own connection; others wait."""

DRAIN_S = 5.0
"""Seconds that requests in progress may take when the receiver stops."""


class Receiver:
    """Accepts OTLP and stores it in ``data_dir``, or in the configured database.

    A context manager, or `run_forever`. ``say`` shows messages about destinations that are unreachable.
    ``inherited``: resources that the caller hands over; the receiver is embedded then. If a token is
    required, the lock file contains one for users who may read the folder. An embedded receiver loads
    its query API at the first query, which needs that token.

    Errors of `start`: `StoreBusy` if another receiver writes to the directory, `StoreUnavailable`,
    `NotOffered` if the engine of the store lacks a configured feature, `UsageError` if a port is taken,
    `ConfigurationError` if the host is not loopback and there is no token, if the TLS files cannot be
    used, if gRPC is configured and grpcio is not installed, or if this process may open too few files.
    The constructor raises `ConfigurationError` for an invalid destination.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        configuration: Configuration = Configuration(),
        *,
        say: Say = lambda text: None,
        inherited: Inherited | None = None,
    ) -> None:
        self.data_dir = Path(data_dir)
        self._addresses = configuration.addresses
        self._access = configuration.access
        self._required = self._access.needs_token(self._addresses.host)
        self._storage = configuration.storage
        self._intake_options = configuration.intake_options
        self._destinations = _destinations_of(configuration.forward)
        self._compatibility = configuration.compatibility
        self._references = configuration.references or References()
        self._programs = configuration.programs
        self._agents = configuration.agents
        self._watching = configuration.watching
        self._alerts = _alerts_of(self._watching)
        self._span_reader = (
            SpanReadingProcess() if configuration.intake_options.separate_process else None
        )
        self._say = say
        self._embedded = inherited is not None
        self._lock = None if inherited is None else inherited.lock
        self._listener = None if inherited is None else inherited.listener
        self._store: Store | None = None
        self._tenants: Tenants | None = None
        self._access_files: list[AccessFile] = []
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
        """The intake of the default tenant, for both transports."""
        return self.tenants.own.intake

    @property
    def tenants(self) -> Tenants:
        """The tenants, with their stores."""
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
        """Take the lock, open the store, listen. If a part fails, everything is released."""
        addresses, access = self._addresses, self._access
        if addresses.tls is not None:
            addresses.tls.check()
        self._access_files = [AccessFile(self.data_dir), AccessFile(self.data_dir)]
        book, audit = TokenBook(self._access_files[0]), Audit(self._access_files[1])
        if not access.token and self._required and not book.any_live():
            raise ConfigurationError(
                f"{addresses.host} can be reached from elsewhere, and there is no token",
                hint="playhead token create, or export PLAYHEAD_TOKEN=…, or bind to 127.0.0.1",
            )
        keyed = access.guarded or self._required or self._embedded
        key = secrets.token_urlsafe(KEY_BYTES) if keyed else ""
        guard = Guard(
            book, static=access.token, key=key, required=self._required, by_book=access.guarded
        )

        def deleted(tenant: str, by: str, trace_id: str) -> None:
            if guard.required:
                audit.note("", by, tenant, "delete", trace_id)

        try:
            if self._lock is None:
                require_descriptors()
                self._lock = WriterLock.take(self.data_dir)
            self._store = open_store(
                self._storage.url or self.data_dir,
                lock=self._lock,
                blobs=self._storage.blobs,
                references=self._references,
            )
            tenants = self._tenants = Tenants(
                self.data_dir,
                self._store,
                self._storage,
                self._span_reader,
                deleted,
                Patience(self._watching.stuck_s, self._watching.stream_s),
                *([] if self._alerts is None else [self._alerts.notify]),
            )
            if self._alerts is not None:
                self._alerts.start()
            self._start_relays(tenants)
            tenant_traces = TenantTraces(tenants, self._compatibility, lambda: self.query_endpoint)
            self._start_http(tenants, guard)
            if addresses.grpc_port is not None:
                if find_spec("grpc") is None:
                    raise ConfigurationError(
                        "gRPC cannot be served: grpcio is not installed",
                        hint="pip install 'playhead[grpc]'",
                    )
                from playhead_receiver.api.jaeger.storage import jaeger_handlers
                from playhead_receiver.endpoints.grpc import grpc_server  # heavy, and optional

                compatibility = jaeger_handlers(tenant_traces, guard, audit)
                server = grpc_server(
                    tenants, guard, compatibility, limit_bytes=self._intake_options.limit_bytes
                )
                self._start_grpc(server, addresses.grpc_port)
            if addresses.query_port is not None:
                if self._embedded:
                    guard = Guard(book, static=access.token, key=key, required=True)
                self._start_query(tenants, guard, audit, tenant_traces)
            self._start_forwarders(tenants)
            tenants.start({token.tenant for token in book.tokens()})
            self._lock.announce(
                self.http_endpoint,
                self.grpc_endpoint,
                self.query_endpoint,
                key,
                passing=self._embedded,
                store=store_mark(self._storage.url),
            )
        except BaseException:
            self.stop(drain_s=0)
            raise

    def stop(self, drain_s: float = DRAIN_S) -> None:
        """Finish requests in progress, then release everything. Idempotent."""
        if self._serving is not None:
            self._serving.stopping = True
            if self._serving.reruns is not None:
                self._serving.reruns.close()
            if self._serving.history is not None:
                self._serving.history.stop()
        if self._tenants is not None:
            self._tenants.release_waiters()
        stopped = None if self._grpc is None else self._grpc.stop(drain_s)
        for server in (self._query, self._http):
            if server is not None:
                server.stop(drain_s)
        if stopped is not None:
            stopped.wait()
        if self._span_reader is not None:
            self._span_reader.close()
        for forwarder in (*self._forwarders, *self._relays):
            forwarder.ask_to_stop()
        for forwarder in (*self._forwarders, *self._relays):
            forwarder.stop()
        if self._tenants is not None:
            self._tenants.close()
        if self._alerts is not None:
            self._alerts.stop()
        if self._store is not None:
            self._store.close()
        for file in self._access_files:
            file.close()
        if self._lock is not None:
            self._lock.release()
        self._grpc = self._http = self._query = self._serving = None
        self._tenants = self._store = self._lock = None
        self._forwarders, self._relays, self._access_files = [], [], []

    def run_forever(self, on_ready: Callable[[Receiver], None] | None = None) -> None:
        """Start, and stop at SIGTERM or SIGINT. For the main thread of a process of its own.

        ``on_ready`` is called when connections are accepted.
        """
        stop_requested = threading.Event()

        def request_stop(_number: int, _frame: FrameType | None) -> None:
            stop_requested.set()

        before = {
            number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            self.start()
            if on_ready is not None:
                on_ready(self)
            stop_requested.wait()
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
        if not self._destinations:
            return
        for destination in self._destinations:
            relay = Relay(destination, self.data_dir, self._say)
            self._relays.append(relay)
            tenants.services(destination.tenant).intake.pass_on.append(relay.put)
            relay.start()

    def _start_forwarders(self, tenants: Tenants) -> None:
        if not self._destinations:
            return
        base_url = self._compatibility.url or self.query_endpoint
        for destination in self._destinations:
            if destination.is_at(self.http_endpoint, f"grpc://{self.grpc_endpoint}"):
                raise ConfigurationError(f"the destination {destination.endpoint} is this receiver")
            store = tenants.services(destination.tenant).store
            forwarder = Forwarder(store, destination, self.data_dir, base_url=base_url, say=self._say)
            self._forwarders.append(forwarder)
            forwarder.start()

    def _start_http(self, tenants: Tenants, guard: Guard) -> None:
        host, port = self._addresses.host, self._addresses.http_port
        app = http_app(
            tenants,
            guard,
            limit_bytes=self._intake_options.limit_bytes,
            # A receiver of a database may have another folder than the one that senders name.
            destination="" if self._storage.url else destination_of(self.data_dir, ""),
            is_watched=self._is_watched,
        )
        self._http = HttpServer(
            self._by_known_names(app, guard),
            self._listener or bind(host, port, "--http-port"),
            host,
            name="playhead-http",
            tls=self._addresses.tls,
        )
        self._http.start()

    def _is_watched(self) -> bool:
        """Whether an alert or a live stream waits for what agents deliver."""
        return self._alerts is not None or (self._serving is not None and self._serving.live > 0)

    def _start_query(
        self, tenants: Tenants, guard: Guard, audit: Audit, tenant_traces: TenantTraces
    ) -> None:
        def make() -> ASGIApp:
            from playhead_receiver.api.figures import Figures
            from playhead_receiver.api.history import MetricsHistory
            from playhead_receiver.api.serving import Serving
            from playhead_receiver.endpoints.query_api import COMPATIBILITY_ROUTERS, query_app

            reruns = Reruns(self._programs) if self._programs.command else None
            self._serving = Serving(
                tenants, guard, audit, self._forwarded, self._references, reruns, self._agents
            )
            self._serving.alerts = self._alerts
            self._serving.history = MetricsHistory(Figures(self._serving))
            self._serving.history.start()
            app = query_app(self._serving, COMPATIBILITY_ROUTERS)
            app.state.tenant_traces = tenant_traces
            return OwnOrigin(Pages(app), self._compatibility.url)

        app = LateApp(make, QUERY_THREADS)
        if not self._embedded:
            app.load()
        host, port = self._addresses.host, self._addresses.query_port or 0
        self._query = HttpServer(
            self._by_known_names(app, guard),
            bind(host, port, "--query-port"),
            host,
            name="playhead-query",
            tls=self._addresses.tls,
        )
        self._query.start()

    def _by_known_names(self, app: ASGIApp, guard: Guard) -> ASGIApp:
        named = urlsplit(self._compatibility.url).hostname
        return SafeAnswers(KnownNames(app, guard, frozenset((named,) if named else ())))

    def _forwarded(self) -> list[Forwarded]:
        from playhead_receiver.api.serving import Forwarded

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

    def _start_grpc(self, server: grpc.Server, port: int) -> None:
        host, tls = self._addresses.host, self._addresses.tls
        address = f"{bracketed(host)}:{port}"
        try:
            if tls is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, tls.for_grpc())
        except RuntimeError:
            raise port_taken(host, port, "--grpc-port") from None
        server.start()
        self._grpc = server
        self._grpc_endpoint = f"{bracketed(host)}:{bound}"


def _alerts_of(watching: Watching) -> Alerts | None:
    if not watching.alerts.strip():
        return None
    return Alerts(read_alerts(watching.alerts), watching.secret)


def _destinations_of(forward: Sequence[str]) -> list[Destination]:
    if not forward:
        return []
    return destinations_of(forward)
