"""Entry point ``opentelemetry_instrumentor``: records where another configurator set up the SDK."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import (
    BaseInstrumentor,  # pyright: ignore[reportAttributeAccessIssue]
)

from playhead_instrumentation.bootstrap.early import switched_off


class PlayheadInstrumentor(BaseInstrumentor):
    """Starts the recording if the configuration of the SDK has not started it."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """No dependencies: libraries are detected when they are imported."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        if switched_off():
            return
        from playhead_instrumentation.bootstrap.sdk import other_instrumentors
        from playhead_instrumentation.bootstrap.start import start_recording

        recording = start_recording(others=[one.name for one in other_instrumentors.installed()])
        if recording is not None and recording.ended:
            recording.notices.problem("a process whose recording was ended is not recorded again")

    def _uninstrument(self, **kwargs: Any) -> None:
        if switched_off():
            return
        from playhead_instrumentation.bootstrap.start import current

        recording = current()
        if recording is not None:
            recording.take_off()
