"""The receiver: store, intake on its two ports, and what is forwarded. Embedded or standing."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

import uvicorn

from playhead_receiver.forward import Forwarder
from playhead_receiver.indexing import Indexer
from playhead_receiver.intake import Intake
from playhead_receiver.intake.http import http_app
from playhead_receiver.keeping import Keeper
from playhead_receiver.lock import WriterLock
from playhead_receiver.store import Upkeep, open_store
from playhead_semconv.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    import grpc

HTTP_PORT = 4318
GRPC_PORT = 4317
DRAIN_S = 5.0
"""How long requests that are under way may take when the receiver stops."""


class Receiver:
    """Takes OTLP on ``host`` and stores it in ``data_dir``; a context manager, or `run_forever`.

    Port 0 is any free one; ``grpc_port`` None: no gRPC. ``forward``: OTLP endpoints that get a copy of
    every span. Errors of `start`: `StoreBusy` if another receiver writes to the directory,
    `StoreUnavailable`, `UsageError` if a port is taken, `ConfigurationError` if ``host`` is not
    loopback and there is no ``token``.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str],
        *,
        http_port: int = HTTP_PORT,
        grpc_port: int | None = GRPC_PORT,
        host: str = "127.0.0.1",
        forward: Sequence[str] = (),
        forward_facts: bool = False,
        token: str = "",
    ) -> None:
        self._data_dir = data_dir
        self._host = host
        self._ports = (http_port, grpc_port)
        self._forward = tuple(forward)
        self._forward_facts = forward_facts
        self._token = token
        self._lock: WriterLock | None = None
        self._store: Upkeep | None = None
        self._intake: Intake | None = None
        self._http: _HttpServer | None = None
        self._grpc: grpc.Server | None = None
        self._grpc_endpoint = ""
        self._forwarders: list[Forwarder] = []
        self._indexer: Indexer | None = None
        self._keeper: Keeper | None = None

    @property
    def store(self) -> Upkeep:
        """The store that this receiver writes to."""
        if self._store is None:
            raise UsageError("the receiver is not running")
        return self._store

    @property
    def intake(self) -> Intake:
        """What takes the requests of both transports."""
        if self._intake is None:
            raise UsageError("the receiver is not running")
        return self._intake

    @property
    def http_endpoint(self) -> str:
        """``http://127.0.0.1:4318``."""
        return "" if self._http is None else self._http.endpoint

    @property
    def grpc_endpoint(self) -> str:
        """``127.0.0.1:4317``; empty without gRPC."""
        return self._grpc_endpoint

    def start(self) -> None:
        """Take the lock, open the store, listen. Whatever fails leaves nothing behind."""
        if not self._token and not _is_loopback(self._host):
            raise ConfigurationError(
                f"{self._host} can be reached from elsewhere, and there is no token",
                hint="export PLAYHEAD_TOKEN=…, or bind to 127.0.0.1",
            )
        try:
            self._lock = WriterLock.take(self._data_dir)
            self._store = open_store(self._data_dir, lock=self._lock)
            intake = self._intake = Intake(self._store)
            self._http = _HttpServer(intake, self._host, self._ports[0], self._token)
            if self._ports[1] is not None:
                self._start_grpc(intake, self._ports[1])
            self._http.start()
            for endpoint in self._forward:
                forwarder = Forwarder(
                    self._store, endpoint, self._data_dir, facts_too=self._forward_facts
                )
                self._forwarders.append(forwarder)
                forwarder.start()
            self._indexer = Indexer(self._store)
            self._indexer.start()
            self._keeper = Keeper(self._store)
            self._keeper.start()
            self._lock.announce(self.http_endpoint, self.grpc_endpoint)
        except BaseException:
            self.stop(drain_s=0)
            raise

    def stop(self, drain_s: float = DRAIN_S) -> None:
        """Finish what is under way, then let go of everything. Idempotent."""
        if self._grpc is not None:
            stopped = self._grpc.stop(drain_s)
        else:
            stopped = None
        if self._http is not None:
            self._http.stop(drain_s)
        if stopped is not None:
            stopped.wait()
        for forwarder in self._forwarders:
            forwarder.stop()
        if self._indexer is not None:
            self._indexer.stop()
        if self._keeper is not None:
            self._keeper.stop()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            self._lock.release()
        self._grpc = self._http = self._intake = self._store = self._lock = None
        self._forwarders = []
        self._indexer = self._keeper = None

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

    def _start_grpc(self, intake: Intake, port: int) -> None:
        from playhead_receiver.intake.grpc import grpc_server  # heavy, and not everybody wants it

        server = grpc_server(intake, token=self._token)
        try:
            bound = server.add_insecure_port(f"{_bracketed(self._host)}:{port}")
        except RuntimeError:
            raise _port_taken(self._host, port, "--grpc-port") from None
        server.start()
        self._grpc = server
        self._grpc_endpoint = f"{_bracketed(self._host)}:{bound}"


class _HttpServer(uvicorn.Server):
    """uvicorn in a thread of its own, on a socket that is bound at once."""

    def __init__(self, intake: Intake, host: str, port: int, token: str) -> None:
        self._socket = _bind(host, port)
        self.endpoint = f"http://{_bracketed(host)}:{self._socket.getsockname()[1]}"
        app = http_app(intake, version=version("playhead-receiver"), token=token)
        super().__init__(
            uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", ws="none")
        )
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run_here, name="playhead-http", daemon=True)

    def start(self) -> None:
        """Listen; returns when connections are taken."""
        self._thread.start()
        self._ready.wait()

    def stop(self, drain_s: float) -> None:
        """Take no more, finish what is under way."""
        if self._thread.ident is None:
            self._socket.close()
            return
        self.config.timeout_graceful_shutdown = max(1, round(drain_s))
        self.should_exit = True
        self._thread.join()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn's own, and says when it is done."""
        await super().startup(sockets)
        self._ready.set()

    def _run_here(self) -> None:
        try:
            self.run(sockets=[self._socket])
        finally:
            self._ready.set()
            self._socket.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as problem:
        bound.close()
        raise _port_taken(host, port, "--http-port", str(problem)) from None
    return bound


def _port_taken(host: str, port: int, option: str, cause: str = "") -> UsageError:
    return UsageError(
        f"port {port} on {host} cannot be listened on; another program has it",
        cause=cause,
        hint=f"take another, or any free one: {option} 0",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
