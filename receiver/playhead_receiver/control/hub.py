"""The hub of a tenant: agents report to it and take orders from it, operators give orders.

It keeps everything in memory. After a restart agents report what they know: who holds which run, and
pending requests. No run depends on it: an agent continues by itself when a lease expires.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

import msgspec

from playhead_core.control.messages import (
    MOST_ORDER_BYTES,
    MOST_ORDERS_BYTES,
    REPORT_S,
    AgentReport,
    ControlOrder,
    ControlOrders,
    Halted,
    OrderProblem,
    OrdersWanted,
)
from playhead_core.errors import UsageError

MOST_AGENTS = 1000
"""Maximum number of connected processes of one tenant."""
MOST_ORDERS = 1000
"""Maximum number of orders that one process has not taken yet."""
SILENT_S = 3 * REPORT_S
"""A process that has not reported for so long counts as disconnected."""
MOST_PROBLEMS = 100
MOST_MADE = 1000
"""Maximum number of ordered checkpoints that are remembered."""
MOST_WATCHERS = 2000
"""Maximum number of agents and operators that wait for a change."""
MOST_HELD = 10_000
"""Maximum number of runs that are held."""
KEPT_BYTES = 64 << 20
"""Total size of bodies of pending requests that are kept; of further ones only the size."""
LONGEST_NAME = 200
LONGEST_LEASE_S = 7 * 86400.0

Clock = Callable[[], float]


FRAME_BYTES = 100
"""Upper bound on the size of a response without orders."""


class NotControlled(UsageError):
    """No process of the run is connected for control."""

    code = "not-controlled"


class RunOver(NotControlled):
    """The run has ended, so nothing of it will be connected again."""

    code = "run-over"


class HeldByOther(UsageError):
    """Another operator holds the run."""

    code = "held"


class NotDone(UsageError):
    """The agent has not carried out an order."""

    code = "not-done"


class TooMany(UsageError):
    """A limit of the hub is reached: processes, orders or watchers."""

    code = "too-many"


class Lease(msgspec.Struct, frozen=True):
    """Who holds a run, and for how long."""

    holder: str
    left_s: float
    paused: bool
    rules: list[str]


class Connected(msgspec.Struct, frozen=True):
    """A process that takes orders for a run."""

    instance: str
    pid: int
    agent: str


class Controlled(msgspec.Struct, frozen=True):
    """The control of one run, as of now."""

    processes: list[Connected]
    lease: Lease | None
    halted: list[tuple[str, Halted]]
    """Each with the instance of its process; oldest first."""
    revision: int


class _Agent:
    """A connected process."""

    def __init__(self, report: AgentReport, now_s: float) -> None:
        self.report = report
        self.seen_s = now_s
        self.orders: list[ControlOrder] = []
        self.problems: dict[int, str] = {}


class _Held:
    """A run that an operator holds."""

    def __init__(self, holder: str, until_s: float) -> None:
        self.holder = holder
        self.until_s = until_s
        self.paused = False
        self.rules: list[str] = []


class Hub:
    """Connected agents, leases and orders of a tenant. Safe from any thread; no method blocks."""

    def __init__(self, now_s: Clock = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._agents: dict[str, _Agent] = {}
        self._held: dict[str, _Held] = {}
        self._made: dict[int, tuple[str, int]] = {}
        # Numbers rise over restarts too: an agent takes no number twice.
        self._numbers = itertools.count(time.time_ns())
        self._watchers: set[Callable[[], None]] = set()
        self.closed = False
        """Whether the receiver is stopping, so that waiting for changes must end."""
        self.revision = 0
        """Counts the changes that operators and agents may wait for."""

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change, from any thread; returns what stops that. `TooMany`."""
        with self._lock:
            if len(self._watchers) >= MOST_WATCHERS:
                raise TooMany(f"{MOST_WATCHERS} agents and operators are waiting for changes already")
            self._watchers.add(changed)
        return lambda: self._watchers.discard(changed)

    def close(self) -> None:
        """The receiver stops: wake all watchers."""
        self.closed = True
        self._changed()

    # Reports of agents.

    def reported(self, report: AgentReport) -> None:
        """Take a report. `TooMany`."""
        with self._lock:
            agent = self._agents.get(report.instance)
            if agent is not None and report.number < agent.report.number:
                return
            before = None if agent is None else agent.report
            if report.ends:
                self._agents.pop(report.instance, None)
            elif agent is None:
                self._forget_silent()
                if len(self._agents) >= MOST_AGENTS:
                    raise TooMany(f"{MOST_AGENTS} processes are connected already")
                agent = self._agents[report.instance] = _Agent(report, self._now_s())
            if agent is not None:
                agent.report = self._fitting(report)
                agent.seen_s = self._now_s()
                self._adopt(report)
                self._taken(agent, report.taken, report.problems)
                self._keep_made(report)
        if before is None or report.ends or _told(before) != _told(report):
            self._changed()

    def orders_for(self, poll: OrdersWanted) -> ControlOrders:
        """The orders that a process has not taken yet."""
        with self._lock:
            agent = self._agents.get(poll.instance)
            if agent is None:
                return ControlOrders(known=False)
            agent.seen_s = self._now_s()
            waiting = (order for order in agent.orders if order.number > poll.taken)
            return ControlOrders(list(_fitting_orders(waiting)))

    def _taken(self, agent: _Agent, taken: int, problems: Iterable[OrderProblem]) -> None:
        for problem in problems:
            agent.problems[problem.order] = problem.said
        while len(agent.problems) > MOST_PROBLEMS:
            del agent.problems[next(iter(agent.problems))]
        agent.orders = [order for order in agent.orders if order.number > taken]

    def _keep_made(self, report: AgentReport) -> None:
        for one in report.made:
            self._made.setdefault(one.order, (report.instance, one.seq))
        while len(self._made) > MOST_MADE:
            del self._made[next(iter(self._made))]

    def _adopt(self, report: AgentReport) -> None:
        """Adopt leases that a process reports and this receiver does not know, after a restart."""
        for hold in report.holds:
            held = self._held.get(hold.trace_id)
            if (held is None or held.until_s <= self._now_s()) and len(self._held) < MOST_HELD:
                until_s = self._now_s() + max(0.0, min(hold.lease_s, LONGEST_LEASE_S))
                held = self._held[hold.trace_id] = _Held(hold.holder[:LONGEST_NAME], until_s)
                held.paused, held.rules = hold.paused, hold.rules

    def _fitting(self, report: AgentReport) -> AgentReport:
        """``report``, without its bodies if too many bytes are kept already."""
        others = (one.report for one in self._agents.values() if one.report.instance != report.instance)
        kept = sum(len(halt.body or "") for one in others for halt in one.halted)
        if kept + sum(len(halt.body or "") for halt in report.halted) <= KEPT_BYTES:
            return report
        halted = [msgspec.structs.replace(halt, body=None) for halt in report.halted]
        return msgspec.structs.replace(report, halted=halted)

    def _forget_silent(self) -> None:
        since_s = self._now_s() - SILENT_S
        for instance in [name for name, one in self._agents.items() if one.seen_s < since_s]:
            del self._agents[instance]
        for trace in [name for name, one in self._held.items() if one.until_s <= self._now_s()]:
            del self._held[trace]

    # Requests and orders of operators.

    def controlled(self, trace_id: str, instances: Iterable[str]) -> Controlled:
        """The control of a run. ``instances``: of its processes, as the store knows them."""
        with self._lock:
            agents = self._of(trace_id, frozenset(instances))
            held = self._held.get(trace_id)
            halted = [
                (agent.report.instance, halt)
                for agent in agents
                for halt in agent.report.halted
                if trace_id in (halt.trace_id, agent.report.trace_id)
            ]
            halted.sort(key=lambda one: one[1].since_ns)
            return Controlled(
                [Connected(one.report.instance, one.report.pid, one.report.agent) for one in agents],
                self._lease(held),
                halted,
                self.revision,
            )

    def connected(self) -> list[tuple[AgentReport, Lease | None]]:
        """All connected processes, as of their last report, and who holds their own runs."""
        with self._lock:
            self._forget_silent()
            reports = [one.report for one in self._agents.values()]
            return [(one, self._lease(self._held.get(one.trace_id))) for one in reports]

    def give(self, order: ControlOrder, instances: Iterable[str], instance: str = "") -> int:
        """Send an order to the processes of its run, or to one of them; returns its number.

        ``order.number`` is given here. `NotControlled`, `HeldByOther`, `TooMany`, `NotDone`.
        """
        if len(msgspec.json.encode(order)) > MOST_ORDER_BYTES - FRAME_BYTES:
            raise NotDone(f"an order is larger than {MOST_ORDER_BYTES >> 20} MiB")
        with self._lock:
            self._forget_silent()
            agents = self._of(order.trace_id, frozenset(instances))
            if not agents:
                raise NotControlled(
                    "no process of this run is connected for control",
                    cause="it has just begun or ended, or was started without control",
                    hint="playhead pause RUN on its machine, as its user;"
                    " or start it with PLAYHEAD_CONTROL=on",
                )
            if instance:
                agents = [one for one in agents if one.report.instance == instance]
            held = self._held.get(order.trace_id)
            harmless = order.what == "checkpoint"  # allowed although another operator holds the run
            if held is not None and held.holder != order.by and not harmless:
                left_s = held.until_s - self._now_s()
                raise HeldByOther(
                    f"{held.holder} holds this run for {left_s:.0f} s more",
                    hint="wait, or ask the holder to release it",
                )
            if any(len(one.orders) >= MOST_ORDERS for one in agents):
                raise TooMany("the agent does not accept orders")
            number = next(self._numbers)
            order = msgspec.structs.replace(order, number=number)
            self._hold(order)
            for agent in agents:
                agent.orders.append(order)
        self._changed()
        return number

    def taken(self, number: int, trace_id: str, instances: Iterable[str]) -> bool:
        """Whether the processes of the run have taken an order. `NotDone` if one could not do it."""
        with self._lock:
            agents = self._of(trace_id, frozenset(instances))
            said = [one.problems[number] for one in agents if number in one.problems]
            waits = any(order.number == number for one in agents for order in one.orders)
        if said:
            raise NotDone(said[0])
        return not waits

    def made(self, number: int) -> tuple[str, int] | None:
        """The first checkpoint that an order took: its process, and the number of its fact."""
        with self._lock:
            return self._made.get(number)

    def _of(self, trace_id: str, instances: frozenset[str]) -> list[_Agent]:
        since_s = self._now_s() - SILENT_S
        return [
            one
            for one in self._agents.values()
            if one.seen_s >= since_s
            and (
                one.report.trace_id == trace_id
                or one.report.instance in instances
                or any(halt.trace_id == trace_id for halt in one.report.halted)
            )
        ]

    def _hold(self, order: ControlOrder) -> None:
        held = self._held.get(order.trace_id)
        if order.what == "continue" and not order.halt:
            if held is not None and not held.rules:
                del self._held[order.trace_id]
            elif held is not None:
                held.paused = False
        elif order.what in ("pause", "step", "rules", "renew"):
            until_s = self._now_s() + order.lease_s
            if held is None:
                held = self._held[order.trace_id] = _Held(order.by, until_s)
            held.until_s = until_s
            held.paused = held.paused or order.what in ("pause", "step")
            if order.what == "rules":
                held.rules = order.rules

    def _lease(self, held: _Held | None) -> Lease | None:
        left_s = 0.0 if held is None else held.until_s - self._now_s()
        if held is None or left_s <= 0:
            return None
        return Lease(held.holder, left_s, held.paused, held.rules)

    def _changed(self) -> None:
        with self._lock:
            self.revision += 1
            watchers = list(self._watchers)
        for changed in watchers:
            changed()


def _fitting_orders(orders: Iterable[ControlOrder]) -> Iterator[ControlOrder]:
    """The first orders, as many as fit into one response."""
    left = MOST_ORDERS_BYTES - FRAME_BYTES
    for order in orders:
        left -= len(msgspec.json.encode(order)) + 1
        if left < 0:
            return
        yield order


def _told(report: AgentReport) -> AgentReport:
    """The part of a report whose change is news to operators."""
    holds = [msgspec.structs.replace(hold, lease_s=0.0) for hold in report.holds]
    return msgspec.structs.replace(report, number=0, holds=holds)


class HubWatch:
    """A context manager for a coroutine that looks at a hub again after each change."""

    def __init__(self, hub: Hub) -> None:
        loop, self._event = asyncio.get_running_loop(), asyncio.Event()

        def changed() -> None:
            try:
                loop.call_soon_threadsafe(self._event.set)
            except RuntimeError:  # the loop is closed
                return

        self._end = hub.watch(changed)

    def clear(self) -> None:
        """Forget earlier changes: only later ones end `changed`."""
        self._event.clear()

    async def changed(self) -> None:
        """Wait for a change since `clear`."""
        await self._event.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
