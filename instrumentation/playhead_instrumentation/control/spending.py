"""Counts the tokens and the cost of model calls by run. Only a rule that needs it imports it."""

from __future__ import annotations

from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead_core.errors import ConfigurationError
from playhead_core.process.interpreter_threads import make_lock
from playhead_core.untrusted.spans import count_in
from playhead_genai.steps import CALLS, counted_key_in, operation_in
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_instrumentation.control.metered import Metered
    from playhead_instrumentation.libraries.common.message_exchange import MessageExchange

MOST_RUNS = 1000
"""Runs of which sums are kept; the one that was used least recently is forgotten first."""


MOST_RESPONSES = 1000
"""Responses of a run whose ids are kept."""


class _Sums:
    def __init__(self) -> None:
        self.tokens = 0
        self.cost_usd = 0.0
        self._responses: set[str] = set()

    def was_counted(self, attributes: dict[str, Any]) -> bool:
        """Whether a call fetches a response whose usage was counted; it counts as counted now."""
        response = counted_key_in(attributes)
        is_call = operation_in(attributes) in CALLS
        was_counted = response in self._responses and not is_call
        if response and len(self._responses) < MOST_RESPONSES:
            self._responses.add(response)
        return was_counted


class Spent:
    """Sums of tokens and costs. Safe from any thread."""

    def __init__(self, price_file: str = "") -> None:
        """``price_file``: corrects the prices of the library; empty: none does."""
        self._price_file = price_file
        self._lock = make_lock()
        self._runs: OrderedDict[str, _Sums] = OrderedDict()
        self._priced = False

    def after_fork(self) -> None:
        """In a child: another thread of the parent may have held a lock."""
        self._lock = make_lock()

    def prices(self) -> None:
        """Costs will be asked for. `ConfigurationError` where prices are not known or not readable."""
        if find_spec("genai_prices") is None:
            raise ConfigurationError(
                "what calls cost is not known here: genai-prices is not installed",
                hint="pip install 'playhead-instrumentation[cost]'",
            )
        if self._price_file and not self._priced:
            from playhead_genai.price_corrections import read_corrections
            from playhead_genai.prices import correct

            try:
                with Path(self._price_file).expanduser().open("rb") as file:
                    correct(read_corrections(file, self._price_file))
            except OSError as problem:
                raise ConfigurationError(
                    f"the file of prices {self._price_file} cannot be read",
                    cause=problem.strerror or str(problem),
                ) from None
        self._priced = True

    def used(self, trace: str, attributes: dict[str, Any], began_ns: int) -> None:
        """A call is over; ``attributes``: of its span."""
        cost_usd = 0.0
        if self._priced:
            from playhead_genai.prices import price_of  # few rules ask for costs

            cost_usd = float(price_of(attributes, began_ns) or 0)
        counts = (a.GEN_AI_USAGE_INPUT_TOKENS, a.GEN_AI_USAGE_OUTPUT_TOKENS)
        tokens = sum(count_in(attributes, name) for name in counts)
        with self._lock:
            sums = self._of(trace)
            if tokens and sums.was_counted(attributes):
                return
            sums.tokens += tokens
            sums.cost_usd += cost_usd

    def attempted(self, trace: str, attempt: Attempt) -> None:
        """An attempt is over that belongs to no call of an SDK; its bytes may be a call."""
        from playhead_instrumentation.tracing.derived import meaning_of  # the rule may not meet any

        if said := meaning_of(attempt):
            self.used(trace, said, attempt.started_ns)

    def meter(self, exchange: MessageExchange) -> Metered:
        """Return what reads the messages of a connection."""
        from playhead_instrumentation.control.metered import Metered  # few programs have such

        return Metered(self.used, exchange)

    def tokens(self, trace: str) -> float:
        """Input and output tokens of a run."""
        with self._lock:
            return self._of(trace).tokens

    def cost_usd(self, trace: str) -> float:
        """Cost of a run, as far as prices are known."""
        with self._lock:
            return self._of(trace).cost_usd

    def _of(self, trace: str) -> _Sums:
        sums = self._runs.get(trace)
        if sums is None:
            sums = self._runs[trace] = _Sums()
        self._runs.move_to_end(trace)
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return sums
