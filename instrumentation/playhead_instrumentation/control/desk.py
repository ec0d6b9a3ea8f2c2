"""The desk at which operators' orders arrive: who holds a run, what is halted, which rules apply."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from playhead_instrumentation.control.given import check_answer
from playhead_instrumentation.control.halt import Halt, HeldArrival
from playhead_instrumentation.control.watching import Watching
from playhead_instrumentation.driver.call import Call, Departures
from playhead_instrumentation.driver.driver import Driver
from playhead_instrumentation.driver.gate import Departure, Turn
from playhead_instrumentation.driver.verdict import Live, Played
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.real_clock import REAL
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.control.messages import MOST_BODIES_BYTES, MOST_HALTED, ControlOrder, Halted, Hold
from playhead_semconv.control.rules import ControlRule, read_rules
from playhead_semconv.errors import PlayheadError
from playhead_semconv.facts import ExchangeId, Fact

KINDS = frozenset(("http", "tool", "mcp"))
"""Kinds of exchanges that wait before they go out."""

LOST_S = 15.0
"""So long without an answer of the receiver it counts as lost."""

PATIENCE_S = 3600.0
"""So long an exchange that a rule has halted waits for a person. Then it is rejected."""

RULE = "rule"
"""Who intervenes where a rule does."""


class Held:
    """A run that an operator holds."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.until_s = 0.0
        """When it goes on by itself, by `REAL.now_s`."""
        self.paused = False
        self.steps = False
        """Whether it is paused again after a step."""
        self.ahead = 0
        """Steps that were let go before there was one."""
        self.rules: list[ControlRule] = []
        self.passing: set[ExchangeId] = set()
        """Exchanges that were let out while it is paused: what comes of them arrives."""


class Desk:
    """Says which asks of the program wait, and lets them go. Safe from any thread."""

    def __init__(
        self,
        driver: Driver,
        own_trace: Callable[[], str],
        watching: Watching,
        rules: Iterable[ControlRule] = (),
    ) -> None:
        """``own_trace``: trace id of the process's own run. ``rules``: they hold from the start.

        `ConfigurationError` where a rule cannot be kept here.
        """
        self.driver = driver
        self.changed: Callable[[], None] = _nothing
        """Called when operators are to be told something new."""
        self.heard_s: Callable[[], float] = REAL.now_s
        """When the receiver was heard last, by `REAL.now_s`."""
        self.watchful = False
        """Whether anything may be halted; looked at before each ask, and nothing else if not."""
        self._pausing = False
        self._own_trace = own_trace
        self._repeats: Final[Departures | None] = driver.control
        self._lock = threading.RLock()
        self._rules: Final = list(rules)
        self._watching: Final = watching
        watching.needs(self._rules)
        self._holds: dict[str, Held] = {}
        self._halts: dict[int, Halt] = {}
        self._arrivals: dict[int, HeldArrival] = {}
        self._count = 0
        self._look()

    # What the driver asks.

    def departure(self, call: Call, key: str, body: bytes | None) -> Departure | None:
        """See `Departures.departure`."""
        if self._repeats is not None and isinstance(call.verdict, Played):
            return self._repeats.departure(call, key, body)
        if not self.watchful:
            return None
        if call.id.kind not in KINDS or not isinstance(call.verdict, Live):
            return None
        return self._departure(call, key, body)

    def arrival(self, call: Call, turn: Turn) -> Turn:
        """See `Departures.arrival`."""
        if not self._pausing or call.id.kind not in KINDS:
            return turn
        return HeldArrival(self, call, turn)

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """See `Departures.answered`."""
        if self.watchful and values.get(a.HTTP_RESPONSE_STATUS_CODE, 0) >= 400:
            self._watching.failed(self.trace_of(call))

    def ended(self, call: Call) -> None:
        """See `Departures.ended`."""
        if self.watchful and call.ended is not None and call.ended.how == "error":
            self._watching.failed(self.trace_of(call))

    def _departure(self, call: Call, key: str, body: bytes | None) -> Departure | None:
        trace = self.trace_of(call)
        hold = self._hold(trace)
        rules = self._rules if hold is None else [*self._rules, *hold.rules]
        rule = self._watching.applies(rules, trace, call, key, body) if rules else None
        if rule is not None:
            halt = Halt(self, call, key, body, rule.condition)
            halt.by_rule = True
            if rule.action == "stop":
                said = f"the rule {rule} applies"
                halt.order(ControlOrder(0, "reject", trace, RULE, said=said))
            return halt
        if hold is None or not hold.paused or self._is_ahead(hold, call):
            return None
        return Halt(self, call, key, body, "step" if hold.steps else "pause")

    def _is_ahead(self, hold: Held, call: Call) -> bool:
        """Whether a step was let go before this one came."""
        with self._lock:
            if not hold.ahead:
                return False
            hold.ahead -= 1
            hold.passing.add(call.id)
            return True

    # What those who wait ask.

    def trace_of(self, call: Call) -> str:
        """Trace id of the run that asks."""
        trace = call.ids[0]
        return trace.hex() if any(trace) else self._own_trace()

    def halter(self, halt: Halt) -> str:
        """Who has halted it."""
        hold = self._hold(halt.trace_id)
        return RULE if halt.by_rule or hold is None else hold.holder

    def enters(self, halt: Halt) -> bool:
        """An ask is about to wait; False if it need not any more."""
        with self._lock:
            hold = self._hold(halt.trace_id)
            if not halt.by_rule and (hold is None or not hold.paused):
                return False
            self._count += 1
            halt.number = self._count
            self._halts[halt.number] = halt
        halt.halts()
        self.changed()
        return True

    def leaves(self, halt: Halt) -> None:
        """An ask waits no longer."""
        with self._lock:
            self._halts.pop(halt.number, None)
            hold = self._hold(halt.trace_id)
            if hold is not None:
                hold.passing.add(halt.call.id)
        self.changed()

    def arrives(self, arrival: HeldArrival) -> bool:
        """Something has arrived; False if it may enter."""
        with self._lock:
            hold = self._hold(arrival.trace_id)
            if hold is None or not hold.paused or arrival.asked.id in hold.passing:
                return False
            self._count += 1
            arrival.number = self._count
            self._arrivals[arrival.number] = arrival
        self.changed()
        return True

    def arrived(self, arrival: HeldArrival) -> None:
        """It waits no longer."""
        with self._lock:
            self._arrivals.pop(arrival.number, None)
        self.changed()

    # What the channel asks.

    def halted(self) -> list[Halted]:
        """What waits, oldest first."""
        with self._lock:
            halts = list[Halt | HeldArrival](self._halts.values())
            halts = [one for one in (*halts, *self._arrivals.values()) if not one.going][:MOST_HALTED]
        left, told = MOST_BODIES_BYTES, list[Halted]()
        for halt in halts:
            told.append(halt.halted(left))
            left -= len(told[-1].body or "")
        return told

    def holds(self) -> list[Hold]:
        """Who holds which run."""
        now_s = REAL.now_s()
        with self._lock:
            return [
                Hold(
                    trace,
                    held.holder,
                    max(0.0, held.until_s - now_s),
                    held.paused,
                    [str(rule) for rule in held.rules],
                )
                for trace, held in self._holds.items()
            ]

    def take(self, order: ControlOrder) -> str:
        """Carry out an order. Returns why it cannot be; empty if it can."""
        try:
            with self._lock:
                return self._take(order)
        except PlayheadError as problem:
            return "; ".join(part for part in (problem.what, problem.cause, problem.hint) if part)
        except ValueError as problem:
            return str(problem)

    def look(self) -> float:
        """Let go of runs and asks whose time is over. Returns the seconds to the next time."""
        now_s = REAL.now_s()
        with self._lock:
            times = [held.until_s for held in self._holds.values()]
            for trace, held in list(self._holds.items()):
                if held.until_s <= now_s:
                    self._expires(trace, held)
            lost = now_s - self.heard_s() > LOST_S
            for halt in self._halts.values():
                waited_s = (time.time_ns() - halt.since_ns) / 1e9
                if halt.by_rule and waited_s > LOST_S and (lost or waited_s > PATIENCE_S):
                    why = "the receiver is lost" if lost else "nobody has answered"
                    halt.order(
                        ControlOrder(
                            0,
                            "reject",
                            halt.trace_id,
                            RULE,
                            said=f"{halt.reason} waits for a person: {why}",
                        )
                    )
            waits = bool(self._halts)
        return min([1.0 if waits else 5.0, *(max(0.0, at - now_s) for at in times)])

    def close(self) -> None:
        """The process ends: let everything go."""
        with self._lock:
            self.watchful = self._pausing = False
            for trace in list(self._holds):
                self._release(trace, "left", RULE)
            self._release(self._own_trace(), "left", RULE)
            self._holds.clear()

    def after_fork(self) -> None:
        """In a child: what waits in other threads waits in the parent."""
        self._lock = threading.RLock()
        self._halts.clear()
        self._arrivals.clear()

    # Orders.

    def _take(self, order: ControlOrder) -> str:
        trace = order.trace_id
        if order.what in ("pause", "rules", "renew", "step"):
            self._lease(order)
        hold = self._holds.get(trace)
        if order.what == "pause" and hold is not None:
            hold.paused, hold.steps, hold.ahead = True, False, 0
            hold.passing.clear()
            self._say(order.what, order.by, trace)
        elif order.what == "rules" and hold is not None:
            rules = read_rules(order.rules)
            self._watching.needs(rules)
            hold.rules = rules
            self._say(order.what, order.by, trace, [str(rule) for rule in hold.rules])
        elif order.what == "continue" and not order.halt:
            self._say(order.what, order.by, trace)
            self._release(trace, "continue", order.by)
            if hold is not None:
                hold.paused = hold.steps = False
                if not hold.rules:
                    del self._holds[trace]
        elif order.what == "step" and hold is not None:
            return self._step(order, hold)
        elif order.what != "renew":
            halt = self._which(order)
            if order.what == "edit":
                halt.edit(order)
                return ""
            if order.what == "answer" and order.answer is not None:
                check_answer(halt.call.id.kind, order.answer)
            halt.order(order)
        self._look()
        return ""

    def _lease(self, order: ControlOrder) -> None:
        hold = self._holds.get(order.trace_id)
        if hold is None and order.what in ("pause", "rules", "step"):
            hold = self._holds[order.trace_id] = Held(order.by)
        if hold is not None:
            hold.holder = order.by
            hold.until_s = REAL.now_s() + order.lease_s

    def _step(self, order: ControlOrder, hold: Held) -> str:
        """Let one go out or arrive, the oldest by default, else the next; the run stays paused."""
        hold.paused = hold.steps = True
        self._look()
        wanted = [halt for halt in self._of(order.trace_id) if order.halt in (0, halt.number)]
        if wanted:
            wanted[0].order(order)
            return ""
        arrivals = [
            one
            for one in self._arrivals.values()
            if self._is_of(one.trace_id, order.trace_id) and order.halt in (0, one.number)
        ]
        if arrivals:
            hold.passing.add(arrivals[0].asked.id)
            self._free(arrivals[0].asked.id)
        elif order.halt:
            raise ValueError(f"nothing waits under the number {order.halt}")
        else:
            hold.ahead += 1
            self._say(order.what, order.by, order.trace_id)
        return ""

    def _free(self, id: ExchangeId) -> None:
        for arrival in self._arrivals.values():
            if arrival.asked.id == id:
                arrival.order(ControlOrder(0, "continue", "", ""))

    def _which(self, order: ControlOrder) -> Halt:
        """The halted ask that an order is about."""
        if order.halt:
            halt = self._halts.get(order.halt)
            if halt is None or halt.going or not self._is_of(halt.trace_id, order.trace_id):
                raise ValueError(f"nothing waits under the number {order.halt}")
            return halt
        halts = self._of(order.trace_id)
        if len(halts) != 1:
            numbers = ", ".join(str(halt.number) for halt in halts[:10])
            raise ValueError(f"{len(halts)} wait ({numbers}): say which" if halts else "nothing waits")
        return halts[0]

    def _of(self, trace: str) -> list[Halt]:
        """Those of a run that wait, oldest first."""
        halts = self._halts.values()
        return [halt for halt in halts if not halt.going and self._is_of(halt.trace_id, trace)]

    def _is_of(self, trace: str, asked: str) -> bool:
        return trace == asked or asked == self._own_trace()

    def _release(self, trace: str, action: str, by: str) -> None:
        """Let everything of a run go."""
        said = "" if action == "continue" else action
        for halt in self._of(trace):
            halt.order(ControlOrder(0, "continue", trace, by, said=said))
        for arrival in self._arrivals.values():
            if self._is_of(arrival.trace_id, trace):
                arrival.order(ControlOrder(0, "continue", trace, by))

    def _expires(self, trace: str, held: Held) -> None:
        lost = REAL.now_s() - self.heard_s() > LOST_S
        action = "lost" if lost else "expired"
        self._say(action, held.holder, trace)
        del self._holds[trace]
        stops = lost and any(rule.what == "lost" and rule.action == "stop" for rule in self._rules)
        if stops:
            for halt in self._of(trace):
                halt.order(
                    ControlOrder(
                        0, "reject", trace, RULE, said="the receiver was lost while the run was paused"
                    )
                )
        self._release(trace, action, held.holder)
        self._look()
        self.changed()

    def _hold(self, trace: str) -> Held | None:
        if not self._holds:
            return None
        return self._holds.get(trace) or self._holds.get(self._own_trace())

    def _look(self) -> None:
        holds = self._holds.values()
        self._pausing = any(held.paused for held in holds)
        self.watchful = bool(self._rules) or self._pausing or any(held.rules for held in holds)

    def _say(self, action: str, by: str, trace: str, rules: list[str] | None = None) -> None:
        attributes: dict[str, Any] = {a.PLAYHEAD_CONTROL_ACTION: action, a.PLAYHEAD_CONTROL_BY: by}
        if rules is not None:
            attributes[a.PLAYHEAD_CONTROL_RULES] = rules
        fact = Fact(
            time.time_ns(),
            lanes.MAIN.hash,
            e.PLAYHEAD_CONTROL_ORDER,
            bytes.fromhex(trace),
            attributes=attributes,
        )
        self.driver.sink.append(fact)


def _nothing() -> None:
    """No-op: nobody is told."""
