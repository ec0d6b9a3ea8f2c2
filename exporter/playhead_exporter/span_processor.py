"""Finished spans on their way into the spool."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from playhead_core.tape.frames import SpanRecord
from playhead_exporter.delivery.notices import DeliveryNotices
from playhead_exporter.encoded import encode_span


class SpoolSpanProcessor(SpanProcessor):
    """Keeps every finished span, sampled or not, as one `SpanRecord`.

    A span that names the exchange from which its messages can be derived leaves them out, unless
    ``whole()``: then the endpoint is known not to derive them.
    """

    def __init__(
        self,
        keep: Callable[[SpanRecord], None],
        whole: Callable[[], bool],
        flush: Callable[[float], bool],
        notices: DeliveryNotices,
    ) -> None:
        self._keep = keep
        self._whole = whole
        self._flush = flush
        self._notices = notices

    def on_end(self, span: ReadableSpan) -> None:
        """Encode the span and append it to the spool. Never raises."""
        try:
            self._keep(SpanRecord(encode_span(span, self._whole())))
        except (
            Exception
        ) as problem:  # telemetry never hurts the agent, whatever an attribute's class does
            self._notices.say(f"span {type(problem)}", f"a span could not be kept: {problem!r}")

    def shutdown(self) -> None:
        """No-op: what is in the spool is safe, and more may come."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Deliver what is there; False if that did not succeed."""
        return self._flush(timeout_millis / 1000)
