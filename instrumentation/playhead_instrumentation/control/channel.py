"""The link to the receiver: reports go up, orders come down, over HTTP.

Three threads of playhead's own. One posts reports, one asks for orders and waits for the answer, and one
looks after leases, which end on time whatever the network does. The program never waits for them.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from playhead_core.control.messages import (
    LISTEN,
    LISTEN_S,
    MOST_ORDERS_BYTES,
    REPORT,
    REPORT_S,
    AgentReport,
    ControlOrders,
    OrderProblem,
    OrdersWanted,
)
from playhead_core.errors import ConfigurationError
from playhead_core.process import interpreter_sockets
from playhead_core.process.interpreter_threads import Bell, Thread
from playhead_core.process.own_descriptors import Identity, identity
from playhead_core.process.own_messages import Log
from playhead_core.settings import Settings
from playhead_instrumentation.control.server import ControlServer
from playhead_instrumentation.patching import at_fork, lanes
from playhead_instrumentation.patching.lanes import own_wait
from playhead_instrumentation.patching.unpatched import REAL

AGAIN_S = 1.0
"""Seconds after which a receiver that does not answer is asked again."""
CONNECT_S = 5.0
LAST_WORDS_S = 1.0
"""How long the end of the process, or of a halt, may wait for what the receiver is told of it."""
MOST_PROBLEMS = 20

log = Log(__name__)


class Address:
    """Where the receiver is, and how it is reached."""

    def __init__(self, settings: Settings) -> None:
        """`ConfigurationError` where the endpoint is not reached over HTTP."""
        parts = urlsplit(settings.endpoint)
        if settings.protocol == "grpc" or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"{settings.endpoint} over {settings.protocol} takes no questions for orders",
                hint="PLAYHEAD_PROTOCOL=http/protobuf, and an endpoint that begins with http",
            )
        self._host, self._port = parts.hostname, parts.port
        path = parts.path.rstrip("/")
        for signal in ("/v1/traces", "/v1/logs", "/v1/metrics"):
            path = path.removesuffix(signal)
        self._path = path
        self._trust: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._trust = ssl.create_default_context(cafile=settings.certificate or None)
            if settings.client_certificate:
                self._trust.load_cert_chain(settings.client_certificate, settings.client_key or None)
        self._headers = {"Content-Type": "application/json", "User-Agent": "playhead"}
        if settings.token:
            self._headers["Authorization"] = f"Bearer {settings.token}"

    def post(self, path: str, message: msgspec.Struct, timeout_s: float) -> bytes:
        """The answer to a message. OSError, `http.client.HTTPException`, `UnexpectedAnswer`."""
        made: http.client.HTTPConnection
        if self._trust is None:
            made = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        else:
            made = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=self._trust
            )
        opened: list[Identity] = []

        def connected(address: tuple[str, int], timeout_s: float, _: None) -> socket.socket:
            connection = interpreter_sockets.connect(address, timeout_s)
            opened.append(identity(connection.fileno()))
            return connection

        connects: Any = made
        connects._create_connection = connected
        try:
            made.request("POST", f"{self._path}{path}", msgspec.json.encode(message), self._headers)
            answer = made.getresponse()
            data = answer.read(MOST_ORDERS_BYTES + 1)
        finally:
            if connects.sock is not None and opened:
                interpreter_sockets.detach_lost(connects.sock, opened[-1])
            made.close()
        if answer.status != 200 or len(data) > MOST_ORDERS_BYTES:
            raise UnexpectedAnswer(f"the receiver answered {answer.status} at {path}")
        return data


class UnexpectedAnswer(Exception):
    """The receiver answers, but not as it should."""


class Channel:
    """The link between the control server of this process and the receiver."""

    def __init__(
        self,
        control_server: ControlServer,
        address: Address,
        describe: Callable[[], AgentReport],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``describe``: what a report says of the process. ``say``: told once of what hinders it."""
        self._control_server: Final = control_server
        self._address: Final = address
        self._describe = describe
        self._say = say
        self._said = False
        self._start_afresh()
        control_server.changed = self._tell
        control_server.heard_s = lambda: self._heard_s

    def start(self) -> None:
        """Start the threads. Repeated in the child of every fork."""
        self._begin()
        at_fork.in_child(self._after_fork)

    def close(self) -> None:
        """The process ends: say so, and let everything go."""
        if self._over:
            return
        self._over = True
        self._tell()
        self._control_server.close()
        with own_wait():
            Thread(f"{lanes.OWN_THREADS}control-end", self._last_words).start()
            self._told.wait(LAST_WORDS_S)

    def _start_afresh(self) -> None:
        self._bell = Bell()
        self._due = Bell()
        self._told = Bell()
        self._posting = threading.Lock()
        self._over = False
        self._taken = 0
        self._number = 0
        self._problems: list[OrderProblem] = []
        self._heard_s = REAL.now_s()

    def _begin(self) -> None:
        running = ("reports", self._report), ("orders", self._listen), ("leases", self._look)
        for name, run in running:
            Thread(f"{lanes.OWN_THREADS}{name}", run).start()

    def _after_fork(self) -> None:
        over = self._over
        self._control_server.after_fork()
        self._start_afresh()
        self._over = over
        if not over:
            self._begin()

    def _tell(self) -> None:
        self._bell.ring()
        self._due.ring()

    def _look(self) -> None:
        while not self._over:
            try:
                wait_s = self._control_server.look()
            except Exception:
                log.debug("playhead could not look after what waits", exc_info=True)
                wait_s = AGAIN_S
            self._due.wait(wait_s)

    def _report(self) -> None:
        while not self._over:
            wait_s = REPORT_S
            try:
                self._post_report()
            except Exception as problem:
                self._hindered(problem)
                wait_s = AGAIN_S
            self._bell.wait(wait_s)

    def _post_report(self, *, ends: bool = False, patience_s: float = CONNECT_S) -> None:
        with self._posting:
            self._number += 1
            problems, made = self._problems[:], self._control_server.made()
            report = msgspec.structs.replace(
                self._describe(),
                number=self._number,
                halted=[] if ends else self._control_server.halted(),
                holds=[] if ends else self._control_server.holds(),
                taken=self._taken,
                problems=problems,
                made=made,
                ends=ends,
            )
            self._address.post(REPORT, report, patience_s)
            del self._problems[: len(problems)]
            self._control_server.told(made)
            self._heard_s = REAL.now_s()

    def _last_words(self) -> None:
        try:
            self._post_report(ends=True)
        except Exception:
            log.debug("playhead could not say that the process ends", exc_info=True)
        self._told.ring()

    def _listen(self) -> None:
        while not self._over:
            try:
                asked = OrdersWanted(self._describe().instance, self._taken, LISTEN_S)
                data = self._address.post(LISTEN, asked, LISTEN_S + CONNECT_S)
                orders = msgspec.json.decode(data, type=ControlOrders)
            except Exception as problem:
                self._hindered(problem)
                REAL.sleep(AGAIN_S)
                continue
            self._heard_s = REAL.now_s()
            if not orders.known:
                self._bell.ring()
                REAL.sleep(AGAIN_S / 10)
                continue
            self._carry_out(orders)

    def _carry_out(self, orders: ControlOrders) -> None:
        for order in orders.orders:
            if order.number <= self._taken:
                continue
            try:
                said = self._control_server.take(order)
            except Exception as problem:
                log.debug("playhead could not carry out an order", exc_info=True)
                said = f"{type(problem).__name__} in the agent"
            if said:
                self._problems = [*self._problems, OrderProblem(order.number, said)][-MOST_PROBLEMS:]
            self._taken = order.number
        if not orders.orders:
            return
        try:
            self._post_report(patience_s=LAST_WORDS_S)
        except Exception as problem:
            self._hindered(problem)
        finally:
            self._control_server.let_go()
            self._tell()

    def _hindered(self, problem: Exception) -> None:
        log.debug("playhead does not reach the receiver for control", exc_info=True)
        if isinstance(problem, UnexpectedAnswer) and not self._said:
            self._said = True
            self._say(f"the agent cannot be controlled: {problem}")


def report_of(instance: bytes, trace_id: bytes, agent: str) -> AgentReport:
    """What a report says of this process."""
    return AgentReport(instance.hex(), trace_id.hex(), os.getpid(), agent)
