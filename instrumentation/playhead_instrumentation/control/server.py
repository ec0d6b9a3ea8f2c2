"""Carries out the orders of operators: pauses requests, and releases, edits or rejects them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from playhead_core.control.messages import (
    MOST_BODIES_BYTES,
    MOST_HALTED,
    CheckpointMade,
    ControlOrder,
    Halted,
    Hold,
)
from playhead_core.control.rules import ControlRule, read_rules
from playhead_core.errors import PlayheadError, UsageError
from playhead_core.facts import ExchangeId, Fact
from playhead_instrumentation.control.held_runs import HeldRun, HeldRuns
from playhead_instrumentation.control.manual_responses import check_answer
from playhead_instrumentation.control.pauses import PausedArrival, PausedRequest
from playhead_instrumentation.control.rules import PendingRequest, RuleEvaluator
from playhead_instrumentation.manual import checkpoint
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.decision import Live, Played
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import Permit, Release
from playhead_instrumentation.session.regular_checkpoints import RegularCheckpoints
from playhead_semconv import attributes as a
from playhead_semconv import events as e

KINDS = checkpoint.MARKED_KINDS
"""Kinds of exchanges that can be paused before they go out."""

ARRIVING = KINDS - {"grpc"}
"""Kinds whose responses can be paused too. Not gRPC: one thread receives for all calls of a channel."""

MOST_WANTED = 100
"""Maximum number of pending checkpoint orders."""

LOST_S = 15.0
"""Seconds without a response after which the receiver counts as lost."""

PATIENCE_S = 3600.0
"""Seconds after which a request that a rule has paused is rejected, if no operator acts."""

LOOK_S, IDLE_S = 1.0, 3600.0
"""Seconds between two checks of pending requests, and if there are none."""

RULE = "rule"
"""Name of the operator on the tape if a rule acts."""


class ControlServer:
    """Registry of pending requests of this process. Safe from any thread."""

    def __init__(
        self,
        driver: Driver,
        own_trace: Callable[[], str],
        watching: RuleEvaluator,
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
        regular = driver.control if isinstance(driver.control, RegularCheckpoints) else None
        self._regular: Final = regular
        self._repeats: Final = driver.control if regular is None else regular.behind
        self._lock = threading.RLock()
        self._rules: Final = list(rules)
        self._watching: Final = watching
        watching.needs(self._rules)
        self._held: Final = HeldRuns(own_trace)
        self._wanted: list[ControlOrder] = []
        """Checkpoints that were ordered and are not made yet."""
        self._made: list[CheckpointMade] = []
        self._halts: dict[int, PausedRequest] = {}
        self._arrivals: dict[int, PausedArrival] = {}
        self._going: list[PausedRequest | PausedArrival] = []
        """Those that have got the order to go on."""
        self._count = 0
        self._update_checks()

    def begin(self, by: str = "") -> None:
        """Have the driver ask from now on; ``by``: who asks for control in the middle of the run."""
        if by:
            self._say("on", by, self._held.own_trace())
        if self._regular is None:
            self.driver.control = self
        else:
            self._regular.behind = self

    # What the driver asks.

    def pending_release(self, call: Call, key: str, body: bytes | None) -> Release | None:
        """See `RequestControl.pending_release`."""
        if self._repeats is not None and isinstance(call.decision, Played):
            return self._repeats.pending_release(call, key, body)
        if not self.watchful:
            return None
        if call.id.kind not in KINDS or not isinstance(call.decision, Live):
            return None
        if self._wanted:
            self._mark(call)
        return self._paused_request(PendingRequest(call, key, body))

    def arrival(self, call: Call, permit: Permit) -> Permit:
        """See `RequestControl.arrival`."""
        if not self._pausing or call.id.kind not in ARRIVING:
            return permit
        return PausedArrival(self, call, permit)

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """See `RequestControl.answered`."""
        if self.watchful and values.get(a.HTTP_RESPONSE_STATUS_CODE, 0) >= 400:
            self._watching.failed(self.trace_of(call), call)

    def ended(self, call: Call) -> None:
        """See `RequestControl.ended`."""
        if not self.watchful or call.ended is None:
            return
        if call.ended.how == "error":
            self._watching.failed(self.trace_of(call), call)
        self._watching.ended(self.trace_of(call), call)

    def _paused_request(self, ask: PendingRequest) -> PausedRequest | None:
        """The halt of an ask, by a rule or because its run is paused; None: it may go out."""
        trace = self.trace_of(ask.call)
        held = self._held.of(trace)
        rules = self._rules if held is None else [*self._rules, *held.rules]
        rule = self._watching.applies(rules, trace, ask) if rules else None
        if rule is not None:
            halt = PausedRequest(self, ask, rule.condition, by_rule=True)
            if rule.action == "stop":
                halt.order(_rejection(trace, f"the rule {rule} applies"))
                halt.go()
            return halt
        if held is None or not held.paused or self._is_ahead(held, ask.call):
            return None
        return PausedRequest(self, ask, "step" if held.steps else "pause")

    def _mark(self, call: Call) -> None:
        """Make the checkpoints that are wanted of the run that asks."""
        trace = self.trace_of(call)
        with self._lock:
            wanted = [one for one in self._wanted if self._held.has(trace, one.trace_id)]
            self._wanted = [one for one in self._wanted if one not in wanted]
            self._update_checks()
        for order in wanted:
            self.marks(call, order)

    def marks(self, call: Call, order: ControlOrder) -> None:
        """Make a checkpoint before an exchange goes out; for the thread that asks."""
        seq = checkpoint.mark_before(call, checkpoint.MANUAL, order.said, order.by)
        with self._lock:
            self._made = [*self._made, CheckpointMade(order.number, -1 if seq is None else seq)]
        self.changed()

    def _is_ahead(self, held: HeldRun, call: Call) -> bool:
        """Whether a step was let go before this one came."""
        with self._lock:
            if not held.ahead:
                return False
            held.ahead -= 1
            held.passing.add(call.id)
            return True

    # What those who wait ask.

    def trace_of(self, call: Call) -> str:
        """Trace id of the run that asks."""
        trace = call.ids[0]
        return trace.hex() if any(trace) else self._held.own_trace()

    def halter(self, halt: PausedRequest) -> str:
        """Who has halted it."""
        held = self._held.of(halt.trace_id)
        return RULE if halt.by_rule or held is None else held.holder

    def enters(self, halt: PausedRequest) -> bool:
        """An ask is about to wait; False if it need not any more."""
        with self._lock:
            held = self._held.of(halt.trace_id)
            if not halt.by_rule and (held is None or not held.paused):
                return False
            self._count += 1
            halt.number = self._count
            self._halts[halt.number] = halt
        halt.halts()
        self.changed()
        return True

    def leaves(self, halt: PausedRequest) -> None:
        """An ask waits no longer."""
        with self._lock:
            self._halts.pop(halt.number, None)
            held = self._held.of(halt.trace_id)
            if held is not None:
                held.passing.add(halt.call.id)
        self.changed()

    def arrives(self, arrival: PausedArrival) -> bool:
        """Something has arrived; False if it may enter."""
        with self._lock:
            held = self._held.of(arrival.trace_id)
            if held is None or not held.paused or arrival.asked.id in held.passing:
                return False
            self._count += 1
            arrival.number = self._count
            self._arrivals[arrival.number] = arrival
        self.changed()
        return True

    def arrived(self, arrival: PausedArrival) -> None:
        """It waits no longer."""
        with self._lock:
            self._arrivals.pop(arrival.number, None)
        self.changed()

    # What the channel asks.

    def halted(self) -> list[Halted]:
        """What waits, oldest first."""
        with self._lock:
            halts = (halt for halt in self._halts.values() if halt.is_recorded)
            waiting = list[PausedRequest | PausedArrival](halts)
            waiting = [one for one in (*waiting, *self._arrivals.values()) if not one.going]
        left, told = MOST_BODIES_BYTES, list[Halted]()
        for one in waiting[:MOST_HALTED]:
            told.append(one.halted(left))
            left -= len(told[-1].body or "")
        return told

    def holds(self) -> list[Hold]:
        """Who holds which run."""
        with self._lock:
            return list(self._held.told())

    def made(self) -> list[CheckpointMade]:
        """Checkpoints that were ordered and are made, as far as they were not told of."""
        return self._made

    def told(self, made: list[CheckpointMade]) -> None:
        """The receiver was told of these."""
        with self._lock:
            self._made = [one for one in self._made if one not in made]

    def look(self) -> float:
        """Let go of runs and asks whose time is over. Returns the seconds until the next look."""
        with self._lock:
            ordered, self._going = self._going, []  # those wait for `let_go`
            times = self._held.times()
            for trace, held in self._held.over():
                self._expires(trace, held)
            self._give_up()
            waits = bool(self._halts)
            over, self._going = self._going, ordered
        for waiter in over:
            waiter.go()
        now_s = REAL.now_s()
        return min([LOOK_S if waits else IDLE_S, *(max(0.0, at - now_s) for at in times)])

    def close(self) -> None:
        """The process ends: let everything go."""
        with self._lock:
            self.watchful = self._pausing = False
            for trace in (*self._held.traces(), self._held.own_trace()):
                self._release(trace, "left", RULE)
            self._held.clear()
        self.let_go()

    def after_fork(self) -> None:
        """In a child: what waits in other threads waits in the parent."""
        self._lock = threading.RLock()
        self._halts.clear()
        self._arrivals.clear()
        self._going.clear()
        self._wanted, self._made = [], []
        self._update_checks()
        self._watching.after_fork()

    @property
    def _lost(self) -> bool:
        return REAL.now_s() - self.heard_s() > LOST_S

    def _expires(self, trace: str, held: HeldRun) -> None:
        """The lease of a run is over."""
        action = "lost" if self._lost else "expired"
        self._say(action, held.holder, trace)
        self._held.drop(trace)
        if action == "lost" and ControlRule("stop", "lost") in self._rules:
            for halt in self._of(trace):
                self._order(halt, _rejection(trace, "the receiver was lost while the run was paused"))
        self._release(trace, action, held.holder)
        self._update_checks()
        self.changed()

    def _give_up(self) -> None:
        """Reject requests that a rule paused, after the time limit for an operator."""
        for halt in self._halts.values():
            waited_s = (time.time_ns() - halt.since_ns) / 1e9
            if halt.going or not halt.by_rule or waited_s <= LOST_S:
                continue
            if self._lost or waited_s > PATIENCE_S:
                why = "the receiver is lost" if self._lost else "no operator has acted"
                self._order(
                    halt, _rejection(halt.trace_id, f"{halt.reason} waits for an operator: {why}")
                )

    # Orders.

    def take(self, order: ControlOrder) -> str:
        """Carry out an order. Returns why it cannot be; empty if it can.

        Released requests wait for `let_go`: the program may end before the receiver learns of it.
        """
        try:
            with self._lock:
                if not order.state:
                    self._take(order)
                    self._update_checks()
                    return ""
                halt = self._which(order)
            return halt.edit_state(order)
        except PlayheadError as problem:
            return "; ".join(part for part in (problem.what, problem.cause, problem.hint) if part)
        except ValueError as problem:
            return str(problem)

    def let_go(self) -> None:
        """Release the requests and responses that got an order to continue."""
        with self._lock:
            going, self._going = self._going, []
        for waiter in going:
            waiter.go()

    def _order(self, waiter: PausedRequest | PausedArrival, order: ControlOrder) -> None:
        """Give what waits the order that ends its wait."""
        waiter.order(order)
        self._going.append(waiter)

    def _take(self, order: ControlOrder) -> None:
        if order.what in ("pause", "rules", "renew", "step"):
            rules = read_rules(order.rules)
            self._watching.needs(rules)
            held = self._held.lease(order)
            if held is not None:
                self._hold(order, held, rules)
        elif order.what == "checkpoint":
            self._want(order)
        elif order.what == "continue" and not order.halt:
            self._go_on(order)
        else:
            halt = self._which(order)
            if order.what == "edit":
                halt.edit(order)
                return
            if order.what == "answer" and order.answer is not None:
                check_answer(halt.call.id.kind, order.answer)
            self._order(halt, order)

    def _hold(self, order: ControlOrder, held: HeldRun, rules: list[ControlRule]) -> None:
        if order.what == "pause":
            held.pauses()
            self._say(order.what, order.by, order.trace_id)
        elif order.what == "rules":
            held.rules = rules
            self._say(order.what, order.by, order.trace_id, [str(rule) for rule in rules])
        elif order.what == "step":
            held.steps_once()
            self._step(order, held)

    def _want(self, order: ControlOrder) -> None:
        """Have a checkpoint made: by what waits, else before the next that goes out."""
        halts = self._of(order.trace_id)
        if halts:
            halts[0].wake(order)
        elif len(self._wanted) >= MOST_WANTED:
            raise ValueError(f"{MOST_WANTED} checkpoints are to be made already")
        else:
            self._wanted = [*self._wanted, order]

    def _go_on(self, order: ControlOrder) -> None:
        self._say(order.what, order.by, order.trace_id)
        self._release(order.trace_id, order.what, order.by)
        held = self._held.named(order.trace_id)
        if held is not None:
            held.goes_on()
            if not held.rules:
                self._held.drop(order.trace_id)

    def _step(self, order: ControlOrder, held: HeldRun) -> None:
        """Release the oldest pending request or response (or the given one), else the next one."""
        halts = [halt for halt in self._of(order.trace_id) if order.halt in (0, halt.number)]
        arrivals = self._arrivals_of(order)
        if halts:
            self._order(halts[0], order)
        elif arrivals:
            held.passing.add(arrivals[0].asked.id)
            self._let_in(arrivals[0].asked.id)
        elif order.halt:
            raise ValueError(f"no pending request has the number {order.halt}")
        else:
            held.ahead += 1
            self._say(order.what, order.by, order.trace_id)

    def _let_in(self, id: ExchangeId) -> None:
        """Deliver the paused response of an exchange."""
        for arrival in self._arrivals.values():
            if arrival.asked.id == id:
                self._order(arrival, ControlOrder(0, "continue", arrival.trace_id, RULE))

    def _which(self, order: ControlOrder) -> PausedRequest:
        """Return the pending request that an order names."""
        if order.halt:
            halt = self._halts.get(order.halt)
            if halt is None or not halt.is_recorded or halt.going:
                raise self._none(order)
            if not self._held.has(halt.trace_id, order.trace_id):
                raise self._none(order)
            return halt
        halts = [halt for halt in self._of(order.trace_id) if halt.is_recorded]
        if not halts:
            raise self._none(order)
        if len(halts) > 1:
            numbers = ", ".join(str(halt.number) for halt in halts[:10])
            raise ValueError(f"{len(halts)} requests are pending ({numbers}): give a number")
        return halts[0]

    def _none(self, order: ControlOrder) -> Exception:
        """Return the error for an order that names no pending request."""
        for one in self._arrivals_of(order):
            return UsageError(
                f"{one.asked.id} was already sent, so it cannot be edited; its response is paused",
                hint="playhead step RUN delivers the response; the next request can be edited",
            )
        if order.halt:
            return ValueError(f"no pending request has the number {order.halt}")
        return ValueError("no request is pending")

    def _arrivals_of(self, order: ControlOrder) -> list[PausedArrival]:
        """Return the paused responses that an order may name, oldest first."""
        return [
            one
            for one in self._arrivals.values()
            if self._held.has(one.trace_id, order.trace_id) and order.halt in (0, one.number)
        ]

    def _of(self, trace: str) -> list[PausedRequest]:
        """Return the pending requests of a run, oldest first."""
        halts = self._halts.values()
        return [halt for halt in halts if not halt.going and self._held.has(halt.trace_id, trace)]

    def _release(self, trace: str, action: str, by: str) -> None:
        """Release all requests and responses of a run."""
        said = "" if action == "continue" else action
        for halt in self._of(trace):
            self._order(halt, ControlOrder(0, "continue", trace, by, said=said))
        for arrival in self._arrivals.values():
            if self._held.has(arrival.trace_id, trace):
                self._order(arrival, ControlOrder(0, "continue", trace, by))

    def _update_checks(self) -> None:
        """Update whether requests and responses have to be checked."""
        self._pausing = self._held.pausing
        halts = bool(self._rules) or self._pausing or self._held.ruling
        self.watchful = halts or bool(self._wanted)

    def _say(self, action: str, by: str, trace: str, rules: list[str] | None = None) -> None:
        """Append a fact about the run as a whole."""
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


def _rejection(trace: str, why: str) -> ControlOrder:
    return ControlOrder(0, "reject", trace, RULE, said=why)


def _nothing() -> None:
    """No-op callback."""
