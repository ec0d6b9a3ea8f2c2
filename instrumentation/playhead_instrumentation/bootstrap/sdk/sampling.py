"""Makes recording independent of the sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes


class RecordAll(Sampler):
    """Asks another sampler and turns its DROP into RECORD_ONLY.

    So the recorder sees every span. Exporters, which take only sampled spans, see the same spans as
    without it.
    """

    def __init__(self, sampler: Sampler, recording: Callable[[], bool] = lambda: True) -> None:
        """``recording``: whether there is a recorder; if not, the other sampler decides alone."""
        self.sampler = sampler
        self._recording = recording
        self.follows_sampled = (
            type(sampler) is ParentBased and getattr(sampler, "_local_parent_sampled", None) is ALWAYS_ON
        )
        """Whether a span below a sampled one of this process is sampled too, as it is by default."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The other sampler's decision, DROP turned into RECORD_ONLY with the given attributes."""
        result = self.sampler.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is Decision.DROP and self._recording():
            # Samplers return no attributes with a DROP, although the span has some.
            return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)
        return result

    def get_description(self) -> str:
        """The description of both samplers."""
        return f"RecordAll{{{self.sampler.get_description()}}}"
