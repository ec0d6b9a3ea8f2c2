"""Opens the control of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from playhead_core.control.rules import rules_of_setting
from playhead_core.errors import PlayheadError
from playhead_instrumentation.control.channel import Address, Channel, report_of
from playhead_instrumentation.control.rules import RuleEvaluator
from playhead_instrumentation.control.server import ControlServer
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_instrumentation.libraries.common.message_exchange import MessageExchange

RunIds = Callable[[], tuple[bytes, bytes]]
"""Trace and span id of the process's own run; asked again after a fork."""


class Control:
    """The control server of this process, and its link to the receiver."""

    def __init__(self, control_server: ControlServer, channel: Channel, watching: RuleEvaluator) -> None:
        self._control_server = control_server
        self._channel = channel
        self._watching = watching

    def used(self, trace_id: bytes, attributes: dict[str, Any], began_ns: int) -> None:
        """A call of a model is over; ``attributes``: of its span."""
        if self._watching.spending is not None:
            self._watching.spending.used(trace_id.hex(), attributes, began_ns)

    def unclaimed(self, attempt: Attempt) -> None:
        """An attempt is over that no SDK made for a call: it may be one to a model all the same."""
        spending = self._watching.spending
        if spending is not None and attempt.span_context is not None:
            trace = attempt.span_context.trace_id.to_bytes(16, "big").hex()
            spending.attempted(trace, attempt)

    def message(
        self, exchange: MessageExchange, sent: bool, data: bytes, attributes: Mapping[str, Any] | None
    ) -> None:
        """A message goes out or has come in: it may say what calls over its connection used."""
        if self._watching.spending is not None and exchange.call.id.kind == "websocket":
            if exchange.meter is None:
                exchange.meter = self._watching.spending.meter(exchange)
            exchange.meter.message(sent, data, attributes or {})

    def close(self) -> None:
        """The process ends: let everything go. Idempotent."""
        self._channel.close()


def open_control(
    session: Session,
    run: RunIds,
    say: Callable[[str], None],
    settle: Callable[[float], bool],
    by: str = "",
) -> Control | None:
    """Let operators control this process; None where the setting is off.

    ``say``: told what hinders it. ``settle``: waits until calls that are over are told of. ``by``: who
    asks for it in the middle of the run, although nothing is set.
    """
    settings = session.settings
    try:
        rules = [] if by else rules_of_setting(settings.control)
        if rules is None:
            return None
        watching = RuleEvaluator(settle, settings.prices)
        control_server = ControlServer(session.driver, lambda: run()[0].hex(), watching, rules)
        agent = str(session.process.attributes.get(a.PLAYHEAD_RUN_AGENT, ""))
        channel = Channel(
            control_server,
            Address(settings),
            lambda: report_of(session.sink.instance, run()[0], agent),
            say,
        )
    except PlayheadError as problem:
        say(f"the agent cannot be controlled: {problem.what}; {problem.hint}".removesuffix("; "))
        return None
    control = Control(control_server, channel, watching)
    session.on_unclaimed = control.unclaimed
    session.on_message = control.message
    control_server.begin(by)
    channel.start()
    return control
