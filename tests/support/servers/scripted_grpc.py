"""A scripted gRPC server on loopback. What it gets and sends are bytes, so it can send nonsense, too.

::

    with ScriptedGrpc() as server:
        server.script([GrpcReply([message.SerializeToString()])])
        grpc.insecure_channel(server.target)

Replies are given in order, whatever method is called. There are no delays: a reply that waits, waits
at a `Gate`. Every request is kept, in order of arrival, in `requests`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc
from support.servers.scripted import Gate


@dataclass(frozen=True)
class GrpcReply:
    """One answer: messages, then a status."""

    messages: Sequence[bytes | Gate] = ()
    code: grpc.StatusCode = grpc.StatusCode.OK
    details: str = ""
    hangs_up: bool = False
    """Whether all connections break in place of the status."""

    @property
    def sent(self) -> list[bytes]:
        """The messages."""
        return [one for one in self.messages if isinstance(one, bytes)]


class ScriptedGrpc(grpc.GenericRpcHandler):
    """The server, behind a pipe whose connections can be broken. Leaving the block closes it."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._replies: list[GrpcReply] = []
        self._asking = threading.Lock()
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(16)
        self._server = grpc.server(self._threads, (self,))
        self._pipe = _Pipe(self._server.add_insecure_port("127.0.0.1:0"))
        self.port = self._pipe.port
        self.target = f"127.0.0.1:{self.port}"
        self._server.start()

    def __enter__(self) -> ScriptedGrpc:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._pipe.close()
        self._server.stop(None).wait()
        self._threads.shutdown()

    def script(self, replies: Iterable[GrpcReply]) -> None:
        """Answer the next requests in order."""
        self._replies += replies

    def service(self, handler_call_details: Any) -> Any:
        """Every method is served alike: an answer of one message is a stream of one."""
        return grpc.unary_stream_rpc_method_handler(self._answer)

    def _answer(self, request: bytes, context: Any) -> Iterator[bytes]:
        with self._asking:
            reply = self._replies[len(self.requests)]
            self.requests.append(request)
        for message in reply.messages:
            if isinstance(message, bytes):
                yield message
            elif not message.hold(self._closing):
                return
        if reply.hangs_up:
            self._pipe.cut()
        elif reply.code is not grpc.StatusCode.OK:
            context.abort(reply.code, reply.details)


class _Pipe:
    """A port whose connections lead to another one."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections."""
        ends, self._ends = self._ends, []
        for one in ends:
            _shut(one)

    def close(self) -> None:
        """Break all connections and take no others."""
        _shut(self._listener)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=_carry, args=(one, other), daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with source, suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    _shut(sink)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
