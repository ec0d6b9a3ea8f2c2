"""Says which rule applies to an ask: by what is asked, and by what the run has done so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from playhead_core.control.loops import LoopFinder
from playhead_core.control.rules import COUNTED, ControlRule
from playhead_core.process.interpreter_threads import make_lock
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.tracing.attempts import Attempt

if TYPE_CHECKING:
    from playhead_instrumentation.libraries.common.message_exchange import MessageExchange

MOST_RUNS = 1000
"""Runs of which sums are kept; the one that asked least recently is forgotten first."""

SETTLE_S = 5.0
"""How long an ask waits until what earlier calls used is known."""


class PendingRequest(NamedTuple):
    """An ask that is about to go out."""

    call: Call
    key: str
    """What is asked: method and URL, the name of a tool, …"""
    body: bytes | None
    """As it goes out, with its credentials; None: it comes in pieces."""


class Meter(Protocol):
    """Counts what calls over a connection use."""

    def message(self, sent: bool, data: bytes, attributes: Mapping[str, Any]) -> None:
        """A message goes out or has come in. Called in the thread of the program."""
        ...


class Spending(Protocol):
    """What the model calls have used."""

    def used(self, trace: str, attributes: dict[str, Any], began_ns: int) -> None:
        """A call is over; ``attributes``: of its span."""
        ...

    def attempted(self, trace: str, attempt: Attempt) -> None:
        """An attempt is over that belongs to no call of an SDK."""
        ...

    def meter(self, exchange: MessageExchange) -> Meter:
        """Return what reads the messages of a connection."""
        ...

    def tokens(self, trace: str) -> float:
        """Input and output tokens of a run."""
        ...

    def cost_usd(self, trace: str) -> float:
        """Cost of a run, as far as prices are known."""
        ...

    def prices(self) -> None:
        """Costs will be asked for. `ConfigurationError` where prices are not known here."""
        ...

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held a lock."""
        ...


class _Asked(msgspec.Struct):
    """Request bodies have more fields; only this one is looked at."""

    model: str = ""


class _Run:
    """What a run has done since rules hold."""

    def __init__(self) -> None:
        self.failed = False
        self.told: set[ControlRule] = set()
        """Limits at which it has paused already: it pauses once for each."""
        self._since_s = REAL.now_s()
        self._steps = 0
        self._loops = LoopFinder()

    def asks(self, ask: PendingRequest, *, may_loop: bool) -> None:
        """It is about to ask something. ``may_loop``: a rule asks for loops, which costs reading it."""
        self._steps += 1
        if may_loop:
            self._loops.add(ask.call.id.kind, ask.key, ask.body or b"", ask.call.id)

    def fails(self, call: Call) -> None:
        """A call has failed."""
        self.failed = True
        self._loops.failed(call.id)

    def ended(self, call: Call) -> None:
        """The answer of a call is known."""
        if call.answer_digest:
            self._loops.answered(call.id, call.answer_digest)

    def meets(self, rule: ControlRule) -> bool:
        """Whether a condition holds that is about this run alone."""
        if rule.what == "error":
            return self.failed
        if rule.what == "loop":
            return self._loops.is_loop
        if rule.what == "steps":
            return self._steps > rule.limit
        return rule.what == "seconds" and REAL.now_s() - self._since_s > rule.limit

    def is_told(self, rule: ControlRule) -> None:
        """A rule applies now: say when it may again."""
        if rule.what == "error":
            self.failed = False
        elif rule.what == "loop":
            self._loops.clear()
        elif rule.what in COUNTED and rule.action == "pause":
            self.told.add(rule)


class RuleEvaluator:
    """Keeps sums by run and compares them with rules. Safe from any thread."""

    def __init__(self, settle: Callable[[float], bool], price_file: str = "") -> None:
        """``settle``: waits until calls that are over have been told of, at most so many seconds.

        ``price_file``: corrects what calls cost.
        """
        self._price_file: Final = price_file
        self._lock = make_lock()
        self._settle: Final = settle
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self.spending: Spending | None = None
        """Set where a rule needs it."""

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held a lock."""
        self._lock = make_lock()
        if self.spending is not None:
            self.spending.after_fork()

    def needs(self, rules: Iterable[ControlRule]) -> None:
        """Be able to keep these rules from now on. `ConfigurationError`."""
        wanted = {rule.what for rule in rules}
        if wanted & {"tokens", "cost"} and self.spending is None:
            from playhead_instrumentation.control.spending import Spent

            self.spending = Spent(self._price_file)
        if "cost" in wanted and self.spending is not None:
            self.spending.prices()

    def failed(self, trace: str, call: Call) -> None:
        """Something that a run asked has failed."""
        self._run(trace).fails(call)

    def ended(self, trace: str, call: Call) -> None:
        """The answer of a call is known. Safe in a finalizer."""
        run = self._runs.get(trace)
        if run is not None:
            run.ended(call)

    def applies(
        self, rules: Sequence[ControlRule], trace: str, ask: PendingRequest
    ) -> ControlRule | None:
        """The first rule that applies to an ask, one that stops before others; None: it may go out.

        Counts the ask.
        """
        run = self._run(trace)
        if self.spending is not None and any(rule.what in ("tokens", "cost") for rule in rules):
            self._settle(SETTLE_S)
        with self._lock:
            run.asks(ask, may_loop=any(rule.what == "loop" for rule in rules))
            for rule in sorted(rules, key=_stops, reverse=True):
                if rule not in run.told and self._is_met(rule, trace, run, ask):
                    run.is_told(rule)
                    return rule
        return None

    def _is_met(self, rule: ControlRule, trace: str, run: _Run, ask: PendingRequest) -> bool:
        kind = ask.call.id.kind
        if rule.what == "tool":
            name = ask.key.removeprefix("tools/call ") if kind == "mcp" else ask.key
            return kind in ("tool", "mcp") and fnmatchcase(name, rule.name)
        if rule.what == "model":
            model = _model_of(ask) if kind in ("http", "grpc") else ""
            return bool(model) and fnmatchcase(model, rule.name)
        if rule.what in ("tokens", "cost"):
            return self._spent(rule.what, trace) > rule.limit
        return run.meets(rule)

    def _spent(self, what: str, trace: str) -> float:
        if self.spending is None:
            return 0.0
        return self.spending.tokens(trace) if what == "tokens" else self.spending.cost_usd(trace)

    def _run(self, trace: str) -> _Run:
        with self._lock:
            run = self._runs.get(trace)
            if run is None:
                run = self._runs[trace] = _Run()
            self._runs.move_to_end(trace)
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
            return run


def _stops(rule: ControlRule) -> bool:
    return rule.action == "stop"


def _model_of(ask: PendingRequest) -> str:
    """The model that a request names; empty where it names none."""
    body = ask.body or b""
    try:
        if model := msgspec.json.decode(body, type=_Asked).model:
            return model
    except (msgspec.DecodeError, msgspec.ValidationError):
        pass  # protobuf, or a form
    from playhead_genai.providers import (
        requested_model,  # it stands in other places than a field of JSON
    )
    from playhead_genai.providers.xai.grpc import request_line

    return requested_model(*request_line(ask.key), body)
