"""Sockets, TLS, and a server thread for an ASGI application."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from playhead_core.errors import ConfigurationError, UsageError
from playhead_receiver.system.impatient_protocol import ImpatientProtocol

LOOPBACK = "127.0.0.1"
IDLE_S = 75
"""Seconds that a connection stays open without a request: longer than the pauses of exporters."""

TICK_S = 0.1
TICKS = 864_000
"""Seconds between ticks of uvicorn, and the number of ticks after which its counter restarts."""


class Tls(msgspec.Struct, frozen=True):
    """Files in PEM form."""

    certificate: str
    """The chain, the server's own certificate first."""
    key: str
    client_ca: str = ""
    """CA of the certificates that clients have to present; empty: they need none."""

    def check(self) -> None:
        """`ConfigurationError` if the files cannot be used."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
        except OSError as problem:  # SSLError is one
            raise ConfigurationError(
                "certificate and key cannot be used",
                cause=str(problem),
                hint="--tls-cert and --tls-key are PEM files that belong together",
            ) from None

    def for_uvicorn(self) -> dict[str, Any]:
        """The options of `uvicorn.Config`."""
        options: dict[str, Any] = {"ssl_certfile": self.certificate, "ssl_keyfile": self.key}
        if self.client_ca:
            options |= {"ssl_ca_certs": self.client_ca, "ssl_cert_reqs": ssl.CERT_REQUIRED}
        return options

    def for_grpc(self) -> Any:
        """Server credentials for gRPC. Reads the files."""
        import grpc

        ca = Path(self.client_ca).read_bytes() if self.client_ca else None
        return grpc.ssl_server_credentials(
            [(Path(self.key).read_bytes(), Path(self.certificate).read_bytes())],
            root_certificates=ca,
            require_client_auth=ca is not None,
        )


class HttpServer(uvicorn.Server):
    """uvicorn in a thread of its own."""

    def __init__(
        self,
        app: Any,
        listener: socket.socket,
        host: str,
        *,
        name: str,
        tls: Tls | None = None,
    ) -> None:
        """``listener``: a socket that listens at ``host``; the server closes it at its end."""
        self._socket = listener
        scheme = "http" if tls is None else "https"
        self.endpoint = f"{scheme}://{bracketed(host)}:{self._socket.getsockname()[1]}"
        super().__init__(
            uvicorn.Config(
                app,
                http=ImpatientProtocol,
                log_level="error",
                access_log=False,
                lifespan="auto",
                ws="none",
                timeout_keep_alive=IDLE_S,
                server_header=False,
                **({} if tls is None else tls.for_uvicorn()),
            )
        )
        self._ready = threading.Event()
        self._leaving = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run_here, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; returns when connections are accepted."""
        self._thread.start()
        self._ready.wait()

    def stop(self, drain_s: float) -> None:
        """Accept no more connections, and finish requests under way for up to ``drain_s`` seconds."""
        if self._thread.ident is None:
            self._socket.close()
            return
        self.config.timeout_graceful_shutdown = max(1, round(drain_s))
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._leaving.set)
        self._thread.join()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As in uvicorn; also signals when it is done."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self._ready.set()

    async def main_loop(self) -> None:
        """As in uvicorn, but ends as soon as `stop` is called, not at the next tick."""
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % TICKS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As in uvicorn, but without its wait of a tenth of a second if there are no connections."""
        for server in self.servers:
            server.close()
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for one in sockets or []:
            one.close()
        if not self.force_exit:
            await self.lifespan.shutdown()

    def _run_here(self) -> None:
        try:
            self.run(sockets=[self._socket])
        finally:
            self._ready.set()
            self._socket.close()


def bind(host: str, port: int, option: str) -> socket.socket:
    """A listening socket. `UsageError` if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as problem:
        bound.close()
        raise port_taken(host, port, option, str(problem)) from None
    return bound


def port_taken(host: str, port: int, option: str, cause: str = "") -> UsageError:
    """The error for a port that cannot be bound."""
    return UsageError(
        f"port {port} on {host} is in use by another program",
        cause=cause,
        hint=f"choose another, or any free one: {option} 0",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """``host`` in the form that a URL needs: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


class LateApp:
    """Wraps an application that takes long to load, so that a server can listen before it is there.

    ``make`` is called once, in a thread. ``threads``: number of requests that it answers concurrently.
    """

    def __init__(self, make: Callable[[], ASGIApp], threads: int) -> None:
        self._make = make
        self._threads = threads
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    def load(self) -> None:
        """Make the application now."""
        if self._app is None:
            self._app = self._make()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "lifespan":
            await _live(receive, send, self._threads)
            return
        if self._app is None:
            async with self._making:
                await anyio.to_thread.run_sync(self.load)
        assert self._app is not None
        await self._app(scope, receive, send)


async def _live(receive: Receive, send: Send, threads: int) -> None:
    """Answer the messages about start and end of a server."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
