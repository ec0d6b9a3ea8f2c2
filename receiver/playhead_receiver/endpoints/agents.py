"""The paths at which agents report and listen, on the port that takes OTLP.

An agent authenticates with its token, scope ``ingest``. It can report pending requests of processes of
its tenant, and receive orders. It cannot give orders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from playhead_core.control.messages import (
    LISTEN,
    LISTEN_S,
    MOST_REPORT_BYTES,
    REPORT,
    AgentReport,
    ControlOrders,
    OrdersWanted,
)
from playhead_core.errors import MalformedOtlp, PlayheadError, TooLarge, UsageError
from playhead_receiver.auth.guard import Guard
from playhead_receiver.control.hub import Hub, HubWatch, TooMany
from playhead_receiver.tenants.tenants import Tenants

T = TypeVar("T")

MOST_LISTENING = 1000
"""Maximum number of agents that wait for orders."""
JSON = "application/json"


def endpoints(
    tenants: Tenants, guard: Guard, refuse: Callable[[PlayheadError], Response]
) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """The endpoint of each path. ``refuse``: converts an error to a response."""
    listening = [0]

    async def admitted(request: Request, kind: type[T]) -> tuple[Hub, T]:
        header = request.headers.get("authorization", "")
        caller = await anyio.to_thread.run_sync(guard.admit, header, "ingest")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_REPORT_BYTES:
                raise TooLarge(f"a report is larger than {MOST_REPORT_BYTES} bytes")
        try:
            message = msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as problem:
            raise MalformedOtlp(f"this is not a valid {kind.__name__.lower()}: {problem}") from None
        services = await anyio.to_thread.run_sync(tenants.services, caller.tenant)
        return services.hub, message

    async def report(request: Request) -> Response:
        try:
            hub, message = await admitted(request, AgentReport)
            hub.reported(message)
            return Response(b"{}", media_type=JSON)
        except PlayheadError as problem:
            return _refused(problem, refuse)
        except ClientDisconnect:
            return Response(status_code=400)

    async def listen(request: Request) -> Response:
        try:
            hub, poll = await admitted(request, OrdersWanted)
            if listening[0] >= MOST_LISTENING:
                raise TooMany(f"{MOST_LISTENING} agents are listening already")
            listening[0] += 1
            try:
                orders = await _orders(hub, poll)
            finally:
                listening[0] -= 1
            return Response(msgspec.json.encode(orders), media_type=JSON)
        except PlayheadError as problem:
            return _refused(problem, refuse)
        except ClientDisconnect:
            return Response(status_code=400)

    return {REPORT: report, LISTEN: listen}


def _refused(problem: PlayheadError, refuse: Callable[[PlayheadError], Response]) -> Response:
    if isinstance(problem, UsageError):
        return Response(problem.what, 429, media_type="text/plain")
    return refuse(problem)


async def _orders(hub: Hub, poll: OrdersWanted) -> ControlOrders:
    """The orders for an agent, as soon as there are any."""
    with HubWatch(hub) as waiting, anyio.move_on_after(max(0.0, min(poll.wait_s, LISTEN_S))):
        while True:
            waiting.clear()
            orders = hub.orders_for(poll)
            if orders.orders or hub.closed or not orders.known:
                return orders
            await waiting.changed()
    return hub.orders_for(poll)
