"""Opens the control of this process."""

from __future__ import annotations

from collections.abc import Callable

from playhead_instrumentation.control.channel import Address, Channel, report_of
from playhead_instrumentation.control.desk import Desk
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a
from playhead_semconv.control.rules import rules_of_setting
from playhead_semconv.errors import PlayheadError


def open_control(
    session: Session, run: Callable[[], tuple[bytes, bytes]], say: Callable[[str], None]
) -> Channel | None:
    """Let operators control this process; None where the setting is off.

    ``run``: trace and span id of the process's own run. ``say``: told what hinders it.
    """
    settings = session.settings
    try:
        rules = rules_of_setting(settings.control)
        if rules is None:
            return None
        desk = Desk(session.driver, lambda: run()[0].hex(), rules)
        agent = str(session.process.attributes.get(a.PLAYHEAD_RUN_AGENT, ""))
        channel = Channel(
            desk,
            Address(settings),
            lambda: report_of(session.sink.instance, run()[0], agent),
            say,
        )
    except PlayheadError as problem:
        say(f"the agent cannot be controlled: {problem.what}; {problem.hint}".removesuffix("; "))
        return None
    session.driver.control = desk
    channel.start()
    return channel
