"""An inbound request: an exchange that the world begins.

Its lane is a root, so work for it can be told from work for concurrent requests. What enters the program
(the request, pieces of its body, the disconnect of the client) is delivered like an answer; what the
program answers is recorded as sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import SpanContext

from playhead_core.errors import TapeError
from playhead_core.facts import Delivery, ExchangeId
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.call import NO_SPAN, Call, ids_of
from playhead_instrumentation.recorder.decision import LIVE, Played
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import Permit
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KIND = "inbound"


class Inbound(Call):
    """One inbound request that is being served."""

    __slots__ = ("_headers", "_said", "lane")

    def __init__(self, driver: Driver) -> None:
        """Take the next request. Nothing is on the tape before `begin`."""
        driver.gate.loosen()
        name, decision = driver.next_request()
        self.lane = lanes.Lane(name, of_request=True)
        self._headers: list[str] = []
        self._said: list[bytes] = []
        """Pieces of the answer's body; collected at a replay only."""
        super().__init__(driver, ExchangeId(self.lane.hash, KIND, 0), decision or LIVE, b"", NO_SPAN)

    def comes(self) -> Permit:
        """The permit of the request itself."""
        decision, gate = self.decision, self._driver.gate
        return gate.arrive(decision.exchange.delivery if isinstance(decision, Played) else None, self.id)

    def arrive(self, index: int | None = None) -> Permit:
        """The permit of the next piece of the request; immediate if the tape has no more pieces."""
        decision = self.decision
        if isinstance(decision, Played) and self._arrived > len(decision.exchange.parts):
            return self._driver.gate.arrive(None, self.id)
        return super().arrive(index)

    def begin(
        self,
        key: str,
        details: dict[str, Any],
        at: Delivery | None,
        span: SpanContext,
    ) -> None:
        """Append the request fact. ``key``, ``details``: without credentials. ``span``: its span."""
        self._trace_id, self._span_id = ids_of(span)
        self._arrived = 1
        attributes: dict[str, Any] = {
            a.PLAYHEAD_ASK_KEY: key,
            a.PLAYHEAD_EXCHANGE_DIRECTION: "in",
            **details,
        }
        decision = self.decision
        if isinstance(decision, Played):
            attributes[a.PLAYHEAD_FIDELITY] = decision.fidelity
            attributes[a.PLAYHEAD_ORIGIN_INSTANCE] = decision.instance.hex()
            attributes[a.PLAYHEAD_ORIGIN_SEQ] = decision.exchange.first_seq
        self._append(e.PLAYHEAD_EXCHANGE_REQUEST, attributes, None, at)

    def head(self, values: dict[str, Any], at: Delivery | None = None) -> None:
        """The program starts its answer."""
        self._headers = values.get(a.PLAYHEAD_HTTP_HEADERS) or []
        self._append(e.PLAYHEAD_EXCHANGE_RESPONSE, values, None, at)

    def sent(self, data: bytes, more: Mapping[str, Any] | None = None) -> bytes:
        """Record a piece of the program's answer; returns what went on tape."""
        kept = super().sent(data, more)
        if isinstance(self.decision, Played):
            self._said.append(kept)
        return kept

    def _at_end(self) -> Mapping[str, Any]:
        """Replay: the volatile values of the answer, paired with the recorded ones."""
        try:
            pairs = self._pairs()
        except TapeError:
            return {}  # the report compares the answers as they are
        return {a.PLAYHEAD_VOLATILE_PAIRS: pairs} if pairs else {}

    def _pairs(self) -> str:
        decision = self.decision
        if not isinstance(decision, Played):
            return ""
        recorded = decision.exchange
        before = [decision.read(part.data) for part in recorded.sent]
        headers: list[str] = recorded.head.get(a.PLAYHEAD_HTTP_HEADERS) or []
        if (headers, b"".join(before)) == (self._headers, b"".join(self._said)):
            return ""
        from playhead_core.normalize import compared_answer  # lazy: recordings do not need it

        return (
            decision.varied(compared_answer(headers, before), compared_answer(self._headers, self._said))
            or ""
        )
