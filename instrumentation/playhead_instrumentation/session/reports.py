"""Reports of the program about itself, such as decisions: recorded as facts and as events of spans.

A report has an id like an exchange: its lane and its number there. A replay compares reports by id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from playhead_core.facts import ExchangeId, Fact
from playhead_core.reports import NAMES, as_json
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import ids_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_instrumentation.recorder.driver import Driver

KIND: Final = "report"


class Reports:
    """Records the reports of a process. Usable from any thread."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._recorded: Mapping[ExchangeId, Mapping[str, Any]] = {}
        """Reports on the tape that is played, which belongs to a driver."""

    def append(self, driver: Driver, name: str, attributes: dict[str, Any], span: trace.Span) -> None:
        """Record a report that is checked and has no credentials, in ``span``."""
        lane = lanes.current()
        id: ExchangeId | None = None
        if lane in (lanes.UNRECORDED, lanes.GC) or name == e.PLAYHEAD_INPUT:
            lane = lanes.MAIN  # a wait, or inside of a tool, which a replay does not run: not compared
        else:
            id = ExchangeId(lane.hash, KIND, lane.next_ordinal(KIND))
        if lane.declared_on != driver.sink.instance:
            driver.declare(lane)
        time_ns, context = REAL.time_ns(), span.get_span_context()
        if span.is_recording():
            span.add_event(name, attributes, time_ns)
        pairs = None if id is None else self._pairs(driver, id, attributes)
        told = attributes if pairs is None else {**attributes, a.PLAYHEAD_VOLATILE_PAIRS: pairs}
        ids = ids_of(context if context.is_valid else None)
        driver.sink.append(Fact(time_ns, lane.hash, name, *ids, id, attributes=told))

    def _pairs(self, driver: Driver, id: ExchangeId, attributes: dict[str, Any]) -> str | None:
        """Replay: volatile values paired with the recorded ones, if nothing else differs."""
        if driver is not self._driver:
            facts = () if driver.tape is None else driver.tape.named(*NAMES)
            found = {one.exchange: one.attributes for one in facts if one.exchange is not None}
            self._driver, self._recorded = driver, found
        recorded = self._recorded.get(id)
        if recorded is None or recorded == attributes:
            return None
        from playhead_core.normalize import ComparedRequest  # lazy: recordings do not need it

        before, now = ComparedRequest.of(as_json(recorded)), ComparedRequest.of(as_json(attributes))
        return driver.states.varied(before, now)
