"""The paths at which agents report and listen, on the port that takes OTLP.

An agent needs the token that it sends with, scope ``ingest``: it can say what waits in processes of its
tenant, and hear what it is to do. It can order nothing.
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
"""Agents that wait for orders at once."""
JSON = "application/json"


def endpoints(
    tenants: Tenants, guard: Guard, refuse: Callable[[PlayheadError], Response]
) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """What answers at each path. ``refuse``: an error as a response."""
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
            said = msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as problem:
            raise MalformedOtlp(f"this is no {kind.__name__.lower()}: {problem}") from None
        house = await anyio.to_thread.run_sync(tenants.house, caller.tenant)
        return house.hub, said

    async def report(request: Request) -> Response:
        try:
            hub, said = await admitted(request, AgentReport)
            hub.reported(said)
            return Response(b"{}", media_type=JSON)
        except PlayheadError as problem:
            return _refused(problem, refuse)
        except ClientDisconnect:
            return Response(status_code=400)

    async def listen(request: Request) -> Response:
        try:
            hub, asked = await admitted(request, OrdersWanted)
            if listening[0] >= MOST_LISTENING:
                raise TooMany(f"{MOST_LISTENING} agents are listening already")
            listening[0] += 1
            try:
                orders = await _orders(hub, asked)
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


async def _orders(hub: Hub, asked: OrdersWanted) -> ControlOrders:
    """The orders for an agent, as soon as there are any."""
    with HubWatch(hub) as waiting, anyio.move_on_after(max(0.0, min(asked.wait_s, LISTEN_S))):
        while True:
            waiting.looks()
            orders = hub.orders_for(asked)
            if orders.orders or hub.closed or not orders.known:
                return orders
            await waiting.changed()
    return hub.orders_for(asked)
