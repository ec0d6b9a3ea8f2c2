"""Repeats what operators and rules did to the exchanges of a tape before they went out."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from playhead_core.errors import TapeError
from playhead_core.facts import Delivery
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.decision import Played
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import Permit, Release
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Repeated:
    """The departures of a replay: an ask that was halted when recorded goes out when it did there."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def pending_release(self, call: Call, key: str, body: bytes | None) -> Release | None:
        """The halt of the recording that answers; None: it was not halted."""
        decision = call.decision
        if not isinstance(decision, Played) or not decision.exchange.controls:
            return None
        halt = RepeatedPause(self._driver, call, decision)
        if all(fact.name == e.PLAYHEAD_CONTROL_CHECKPOINT for fact in decision.exchange.controls):
            halt.passes()
            return None
        return halt

    def arrival(self, call: Call, permit: Permit) -> Permit:
        """``permit``: the tape knows when things arrived."""
        return permit

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """No-op: no rule applies."""

    def ended(self, call: Call) -> None:
        """No-op: no rule applies."""


class RepeatedPause:
    """The permit of an ask that was halted when recorded. Nobody is waited for."""

    def __init__(self, driver: Driver, call: Call, played: Played) -> None:
        self._driver = driver
        self._call = call
        self._played = played

    def passes(self) -> None:
        """It was not halted: only checkpoints were made before it went out."""
        self._states()
        self._goes_on(None)

    def wait(self) -> None:
        """Block until the permit at which it went out."""
        self._states()
        self._goes_on(self._permit().wait())

    def __await__(self) -> Generator[Any, None, None]:
        self._states()
        at: Delivery | None = yield from self._permit().__await__()
        self._goes_on(at)

    def _permit(self) -> Permit:
        return self._driver.gate.arrive(self._played.exchange.released, self._call.id)

    def _states(self) -> None:
        """Report the registered states as they were reported, and take over those that were edited."""
        registered = RUNTIME.registered
        if registered is None:
            return
        for fact in self._played.exchange.controls:
            if fact.name == e.PLAYHEAD_CONTROL_HALT:
                registered.halted()
            elif fact.name == e.PLAYHEAD_CONTROL_CHECKPOINT:
                at = fact.attributes
                label = str(at.get(a.PLAYHEAD_CHECKPOINT_LABEL, ""))
                registered.repeat_mark(str(at.get(a.PLAYHEAD_CHECKPOINT_KIND, "")), label)
            elif fact.name == e.PLAYHEAD_CONTROL_EDIT and a.PLAYHEAD_STATE_NAME in fact.attributes:
                registered.repeat_edit(str(fact.attributes[a.PLAYHEAD_STATE_NAME]))

    def _goes_on(self, at: Delivery | None) -> None:
        exchange, call = self._played.exchange, self._call
        for fact in exchange.controls:
            body = fact.body
            if body is not None:
                try:
                    call.body, body = self._driver.written(self._played.read(body), {})
                except TapeError:
                    pass  # the reference stays
            call.intervened(fact.name, fact.attributes, body, at if fact.delivery is not None else None)
