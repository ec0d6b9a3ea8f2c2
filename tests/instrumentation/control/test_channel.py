"""The link to the receiver: what it is told, and when."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.outside.halting import RUN, at_control_server, going
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply

import playhead
from playhead_core.control.messages import (
    LISTEN,
    REPORT,
    AgentReport,
    ControlOrder,
    ControlOrders,
    OrdersWanted,
)
from playhead_core.settings import Settings
from playhead_instrumentation.control import channel as channels
from playhead_instrumentation.control.channel import Address, Channel


@playhead.tool
def look(at: Any) -> Any:
    return at


def test_the_receiver_hears_of_an_order_before_the_program_goes_on(monkeypatch: pytest.MonkeyPatch):
    """A program may end at once, and nobody could say then whether the order was taken."""
    gone_on = list[bool]()
    monkeypatch.setattr(channels, "LAST_WORDS_S", 60.0)  # here the receiver may take its time

    def orders(request: Request) -> Reply:
        taken = msgspec.json.decode(request.body, type=OrdersWanted).taken
        wanted = ControlOrder(taken + 1, "continue", RUN, "anna")
        return json_reply(msgspec.to_builtins(ControlOrders([] if taken else [wanted])))

    def reported(request: Request) -> Reply:
        if msgspec.json.decode(request.body, type=AgentReport).taken:
            gone_on.append(running.done())
        return json_reply({})

    with at_control_server() as operator, ScriptedServer() as server:
        operator.order("pause")
        running = going(lambda: look(1))
        operator.halted()
        server.on(LISTEN, orders, repeat=True)
        server.on(REPORT, reported, repeat=True)
        channel = Channel(
            operator.control_server,
            Address(Settings(endpoint=server.url)),
            lambda: AgentReport("ab", RUN),
        )
        channel.start()
        try:
            assert running.result(60) == 1
        finally:
            channel.close()
    assert gone_on[0] is False
